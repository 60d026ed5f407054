// What the report does beyond being read: values under the pointer, zoom by a range, search, local times, short cards.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.documentElement.classList.add("js");

  // --- times ---

  const two = (value) => String(value).padStart(2, "0");
  let isLocal = false;

  function clockOf(ms, form) {
    const at = new Date(isLocal ? ms - new Date(ms).getTimezoneOffset() * 60000 : ms).toISOString();
    return form === "day" ? at.slice(5, 10) : form === "minute" ? at.slice(11, 16) : form === "second" ? at.slice(11, 19) : `${at.slice(0, 10)} ${at.slice(11, 19)}`;
  }

  function showTimes() {
    for (const time of all("time")) time.textContent = clockOf(Date.parse(time.dateTime));
    for (const days of all(".days")) days.textContent = days.textContent.replace(/, .*/, isLocal ? ", local time" : ", UTC");
    plots.forEach((plot) => plot.draw());
  }

  function setUpClock(button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      isLocal = !isLocal;
      button.textContent = isLocal ? "local" : "UTC";
      button.setAttribute("aria-label", `Times: ${isLocal ? "local" : "UTC"}`);
      showTimes();
    });
  }

  // --- plots over time: all of them show the same range ---

  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  const STEPS = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND)
    .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14, 28, 91, 182, 365].map((n) => n * DAY));
  const range = { from: 0, to: 0 };
  let whole = null;

  class Plot {
    constructor(figure) {
      this.figure = figure;
      this.area = figure.querySelector(".area");
      this.lines = figure.querySelector("svg.lines");
      this.series = all("path[data-name]", figure).map((path) => ({ name: path.dataset.name, points: pointsOf(path) }));
      this.cursor = made("div", "cursor", this.area);
      this.chosen = made("div", "chosen", this.area);
      this.hint = made("div", "hint", this.area);
      this.hint.setAttribute("aria-live", "polite");
      this.reset = made("button", "whole", this.area);
      Object.assign(this.reset, { type: "button", textContent: "Whole range" });
      this.reset.addEventListener("click", () => zoom(whole.from, whole.to));
      for (const part of [this.cursor, this.chosen, this.hint, this.reset]) part.hidden = true;
      figure.classList.add("zoomable");
      this.listen();
    }

    listen() {
      const area = this.area;
      area.tabIndex = 0;
      area.setAttribute("role", "group");
      area.setAttribute("aria-label", `${this.figure.querySelector("h2, h3").textContent}. Arrow keys move over it, plus and minus change its range.`);
      area.addEventListener("pointermove", (event) => this.moved(this.timeAt(event)));
      area.addEventListener("pointerleave", () => this.left());
      area.addEventListener("blur", () => this.left());
      area.addEventListener("pointerdown", (event) => {
        if (event.button || event.target === this.reset) return;
        this.start = this.timeAt(event);
        if (event.pointerType === "mouse") area.setPointerCapture(event.pointerId);
      });
      area.addEventListener("pointerup", (event) => {
        const ends = [this.start, this.timeAt(event)].sort((a, b) => a - b);
        const isRange = this.start !== undefined && ends[1] - ends[0] > (range.to - range.from) / 100;
        this.start = undefined;
        this.chosen.hidden = true;
        if (isRange) zoom(...ends);
      });
      area.addEventListener("keydown", (event) => this.pressed(event));
    }

    timeAt(event) {
      const box = this.area.getBoundingClientRect();
      return range.from + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (range.to - range.from);
    }

    placeOf(ms) {
      return (100 * (ms - range.from)) / (range.to - range.from);
    }

    moved(ms) {
      this.at = ms;
      this.cursor.hidden = false;
      this.cursor.style.left = `${this.placeOf(ms)}%`;
      if (this.start !== undefined) {
        const [from, to] = [this.start, ms].sort((a, b) => a - b);
        this.chosen.hidden = false;
        this.chosen.style.left = `${this.placeOf(from)}%`;
        this.chosen.style.width = `${this.placeOf(to) - this.placeOf(from)}%`;
      }
      this.tell(ms);
    }

    tell(ms) {
      this.hint.replaceChildren(Object.assign(document.createElement("b"), { textContent: clockOf(ms) }));
      const told = this.series.map(({ name, points }) => [name, valueAt(points, (ms - whole.from) / 1000)]).filter(([, value]) => value !== null);
      const under = all("[data-from][data-to]", this.figure)
        .filter(({ dataset }) => dataset.from <= ms && ms <= dataset.to).map((shape) => [shape.title || shape.querySelector("title").textContent, ""]);
      for (const [name, value] of told.concat(under).slice(0, 12)) this.hint.append(value === "" ? name : `${name}: ${value.toLocaleString("en")}`, document.createElement("br"));
      this.hint.hidden = false;
      const isRight = this.placeOf(ms) > 50;
      this.hint.style.left = isRight ? "auto" : `calc(${this.placeOf(ms)}% + .5rem)`;
      this.hint.style.right = isRight ? `calc(${100 - this.placeOf(ms)}% + .5rem)` : "auto";
    }

    left() {
      this.cursor.hidden = this.hint.hidden = true;
      this.at = undefined;
    }

    pressed(event) {
      const length = range.to - range.from;
      const at = this.at ?? (range.from + range.to) / 2;
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (step) this.moved(Math.min(range.to, Math.max(range.from, at + (step * length) / 100)));
      else if (event.key === "+" || event.key === "=") zoom(at - length / 4, at + length / 4);
      else if (event.key === "-") zoom(at - length, at + length);
      else if (event.key === "Escape" || event.key === "0") zoom(whole.from, whole.to);
      else return;
      event.preventDefault();
    }

    draw() {
      if (this.lines) {
        const [, top, , height] = this.lines.getAttribute("viewBox").split(" ");
        this.lines.setAttribute("viewBox", `${(range.from - whole.from) / 1000} ${top} ${(range.to - range.from) / 1000} ${height}`);
      }
      for (const shape of all("[data-from][data-to]", this.figure)) {
        const left = Math.max(0, this.placeOf(+shape.dataset.from)), right = Math.min(100, this.placeOf(+shape.dataset.to));
        const width = `${Math.max(0.3, right - left)}%`;
        shape.style.display = right < 0 || left > 100 ? "none" : "";
        if (shape.tagName === "A") Object.assign(shape.style, { left: `${left}%`, width });
        else [["x", `${left}%`], ["width", width]].forEach((each) => shape.setAttribute(...each));
      }
      for (const text of all("text[data-at], line[data-at]", this.figure)) {
        const at = this.placeOf(+text.dataset.at);
        text.style.display = at < 0 || at > 100 ? "none" : "";
        for (const name of text.tagName === "line" ? ["x1", "x2"] : ["x"]) text.setAttribute(name, `${at}%`);
      }
      this.reset.hidden = range.from === whole.from && range.to === whole.to;
      this.ticks();
    }

    ticks() {
      const below = this.figure.querySelector(".below"), lines = this.figure.querySelector(".grid.time");
      const step = STEPS.find((each) => (range.to - range.from) / each <= 6) ?? STEPS.at(-1);
      const form = step < MINUTE ? "second" : step < DAY ? "minute" : "day";
      all(".tick", below).forEach((tick) => tick.remove());
      lines.replaceChildren();
      for (let ms = Math.ceil(range.from / step) * step, n = 0; ms <= range.to && n < 20; ms += step, n++) {
        const at = this.placeOf(ms);
        const tick = Object.assign(document.createElement("span"), { className: `tick${at < 2 ? " begin" : at > 98 ? " end" : ""}`, textContent: clockOf(ms, form) });
        tick.style.left = `${at}%`;
        below.insertBefore(tick, below.querySelector(".days"));
        const line = document.createElementNS(lines.namespaceURI, "line");
        for (const [name, value] of Object.entries({ x1: tick.style.left, x2: tick.style.left, y1: "0", y2: "100%" })) line.setAttribute(name, value);
        lines.append(line);
      }
    }
  }

  function made(tag, name, parent) {
    return parent.appendChild(Object.assign(document.createElement(tag), { className: name }));
  }

  function pointsOf(path) {
    const points = [];
    for (const [, letter, text] of path.getAttribute("d").matchAll(/([MLHV])([^MLHV]+)/g)) {
      const [x, y] = letter === "V" ? [points.at(-1)[0], text] : letter === "H" ? [text, -points.at(-1)[1]] : text.split(",");
      points.push([+x, -y || 0, letter === "M"]);
    }
    return points;
  }

  // The newest value at or before a moment; nothing before the first, after the last and in gaps.
  function valueAt(points, second) {
    if (!points.length || second < points[0][0] - 1e-3 || second > points.at(-1)[0] + 1e-3) return null;
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (points[middle][0] <= second + 1e-3) low = middle;
      else high = middle - 1;
    }
    const isInGap = points[low + 1]?.[2] && second > points[low][0] + 1e-3;
    return isInGap ? null : points[low][1];
  }

  function zoom(from, to) {
    const length = Math.min(Math.max(to - from, 100), whole.to - whole.from);
    range.from = Math.min(Math.max(from, whole.from), whole.to - length);
    range.to = range.from + length;
    plots.forEach((plot) => plot.draw());
  }

  // --- all groups: what is typed chooses some, and each is drawn ---

  const FOUND_MAX = 40;
  const SVG = Object.assign(document.createElement("template"), { innerHTML: "<svg/>" }).content.firstChild.namespaceURI;

  function strip(digits, kind, title) {
    const image = document.createElementNS(SVG, "svg");
    Object.entries({ viewBox: `0 0 ${digits.length} 9`, preserveAspectRatio: "none", class: `strip ${kind}`, role: "img", "aria-label": title })
      .forEach((each) => image.setAttribute(...each));
    [...digits].forEach((digit, at) => {
      if (digit === "0") return;
      const bar = image.appendChild(document.createElementNS(SVG, "rect"));
      Object.entries({ x: at, y: 9 - digit, width: 1, height: digit }).forEach((each) => bar.setAttribute(...each));
    });
    return image;
  }

  const counted = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

  function groupItem([name, kind, state, rebalances, longest, findings, rebalanced, lagged, lag]) {
    const item = document.createElement("li");
    made("b", "", item).textContent = name;
    const words = [kind, state, counted(rebalances, "rebalance")];
    if (longest !== null) words.push(`longest ${(longest / 1000).toLocaleString("en")} s`);
    if (lag !== null) words.push(`up to ${lag.toLocaleString("en")} records behind in one partition`);
    if (findings) words.push(counted(findings, "finding"));
    if (rebalanced === "") words.push("too many groups to draw this one");
    made("span", "", item).textContent = words.filter(Boolean).join(" · ");
    if (rebalanced) item.append(strip(rebalanced, "rebalanced", "Rebalances over time"));
    if (lagged) item.append(strip(lagged, "lagged", "Lag over time"));
    return item;
  }

  function setUpSearch(box) {
    const groups = JSON.parse(box.querySelector("script").textContent);
    const texts = groups.map(([name, kind, state]) => `${name} ${kind} ${state}`.toLowerCase());
    const field = box.querySelector("input"), list = box.querySelector("ul"), status = box.querySelector("p");
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = groups.filter((_, at) => words.every((word) => texts[at].includes(word)));
      list.replaceChildren(...found.slice(0, FOUND_MAX).map(groupItem));
      const some = found.length > FOUND_MAX ? `, the first ${FOUND_MAX} are shown` : "";
      status.textContent = `${counted(found.length, "group")}${some}. The first bars are rebalances, the second lag, over the time of the report; the highest bar is the group’s own maximum.`;
    };
    box.hidden = false;
    field.addEventListener("input", show);
    show();
  }

  // --- small things ---

  function setUpCard(row) {
    if (row.cells.length <= 4) return;
    const cell = row.insertCell();
    cell.className = "more";
    const button = Object.assign(made("button", "", cell), { type: "button", textContent: "more" });
    button.addEventListener("click", () => {
      const isWhole = row.classList.toggle("whole-row");
      button.textContent = isWhole ? "less" : "more";
      button.setAttribute("aria-expanded", isWhole);
    });
  }

  // On a narrow screen rows are cards; a long table shows the first of them.
  function setUpTable(table) {
    const { rows } = table.tBodies[0];
    if (rows.length <= 3) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "all-rows" });
    const tell = (isWhole) => {
      table.classList.toggle("whole-table", isWhole);
      button.textContent = isWhole ? "Fewer rows" : `All ${rows.length} rows`;
      button.setAttribute("aria-expanded", isWhole);
    };
    button.addEventListener("click", () => tell(!table.classList.contains("whole-table")));
    tell(false);
    table.parentElement.after(button);
  }

  function setUpCopy(code) {
    if (!navigator.clipboard) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "id", title: `Copy ${code.dataset.copy}` });
    code.replaceWith(button);
    button.append(code);
    button.addEventListener("click", () => navigator.clipboard.writeText(code.dataset.copy));
  }

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((part) => (part.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((part) => (part.open = false)));

  const body = document.querySelector("main");
  whole = { from: +body.dataset.from, to: +body.dataset.to };
  Object.assign(range, whole);
  const plots = all("figure.plot").filter((figure) => figure.querySelector(".grid.time")).map((figure) => new Plot(figure));
  all(".clock").forEach(setUpClock);
  all(".cards tbody tr").forEach(setUpCard);
  all("table.cards").forEach(setUpTable);
  all("[data-copy]").forEach(setUpCopy);
  all(".search").forEach(setUpSearch);
})();
