// Live updates: when the server says that something on this page has changed, the page is loaded anew and its content
// replaced, at most every two seconds, and never while the reader types, selects, has opened a frame or has paused.
"use strict";
(() => {
  const PAUSE_MS = 2000;
  const main = document.getElementById("main");
  if (!main) return;
  let timer = null;
  let isPaused = false;

  function isBusy() {
    const active = document.activeElement;
    const types = active && main.contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName);
    return types || String(getSelection()) !== "" || main.querySelector("details.frame[open]") !== null;
  }

  function reload() {
    timer = null;
    if (!isPaused && !document.hidden && !isBusy()) load(isBusy);
  }

  // Whether there was something to show. The reader may have gone on, or become busy, while it was loaded.
  async function load(isUnwanted) {
    const address = location.href;
    let answer, text;
    try {
      answer = await fetch(address, { headers: { accept: "text/html" } });
      text = await answer.text();
    } catch {
      return false; // The console is away for a moment; the next event brings it back.
    }
    if (address !== location.href || isUnwanted()) return true;
    if (answer.status === 404 || (answer.redirected && new URL(answer.url).pathname === "/login")) {
      location.reload(); // What the page is about is gone, or the login is over.
      return true;
    }
    if (!answer.ok) return false;
    const page = new DOMParser().parseFromString(text, "text/html");
    const next = page.getElementById("main");
    if (next) replace(next);
    const bar = page.querySelector(".sections");
    const before = document.querySelector(".sections");
    if (bar && before) {
      const left = before.firstElementChild.scrollLeft;
      before.replaceWith(bar);
      bar.firstElementChild.scrollLeft = left;
    }
    return true;
  }

  // On a narrow screen the bar is scrolled to the section of this page.
  function showSection() {
    const bar = document.querySelector(".sections ul");
    const current = bar?.querySelector("[aria-current]")?.getBoundingClientRect();
    if (current) bar.scrollLeft += current.left + current.width / 2 - innerWidth / 2;
  }

  // Folded parts and scrolled ones stay as the reader has left them, and the focus stays where it was.
  function replace(next) {
    const open = [...main.querySelectorAll("details")].map((each) => each.open);
    next.querySelectorAll("details").forEach((each, at) => { if (open[at]) each.open = true; });
    const scrolled = [...main.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    const focused = document.activeElement;
    const path = focused && main.contains(focused) ? place(focused) : null;
    main.replaceChildren(...next.childNodes);
    main.querySelectorAll(".scroll").forEach((each, at) => { if (scrolled[at]) each.scrollTo(...scrolled[at]); });
    setUpWalks();
    setUpClocks();
    if (path) found(path)?.focus({ preventScroll: true });
  }

  function place(node) {
    const path = [];
    for (let at = node; at !== main; at = at.parentElement) path.unshift([...at.parentElement.children].indexOf(at));
    return path;
  }

  function found(path) {
    return path.reduce((at, index) => at?.children[index], main);
  }

  // Arrow keys go from one link or box of a drawing to the nearest one in their direction, and a line tells its title.
  const walk = "[data-walk] svg a, [data-walk] svg .box";
  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  function setUpWalks() {
    for (const each of main.querySelectorAll("[data-walk]")) {
      each.querySelectorAll("svg a, svg .box").forEach((stop, at) => { stop.tabIndex = at ? -1 : 0; });
      each.querySelector(".told").textContent = each.dataset.walk;
    }
  }

  function step(event) {
    const from = event.target.closest?.(walk);
    const way = directions[event.key];
    if (!from || !way) return;
    event.preventDefault();
    const middle = (each) => {
      const box = each.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = middle(from);
    let best = null;
    let least = Infinity;
    for (const each of from.closest("[data-walk]").querySelectorAll("svg a, svg .box")) {
      const [dx, dy] = middle(each).map((at, axis) => at - [x, y][axis]);
      const ahead = dx * way[0] + dy * way[1];
      const far = ahead + 3 * Math.abs(dx * way[1] + dy * way[0]);
      if (ahead > 0.5 && far < least) [best, least] = [each, far];
    }
    if (!best) return;
    from.tabIndex = -1;
    best.tabIndex = 0;
    best.focus();
  }

  document.addEventListener("focusin", (event) => {
    const stop = event.target.closest?.(walk);
    if (stop) stop.closest("[data-walk]").querySelector(".told").textContent = stop.querySelector("title").textContent;
  });
  document.addEventListener("keydown", step);

  // Locks run out between two looks at the cluster.
  const isStill = matchMedia("(prefers-reduced-motion: reduce)");
  let shownAt = 0;

  function setUpClocks() {
    shownAt = performance.now();
    if (isStill.matches) return;
    for (const hand of main.querySelectorAll(".clock .hand")) {
      const { left, whole } = hand.dataset;
      hand.style.animation = `run-out ${whole}ms linear ${left - whole}ms forwards`;
    }
  }

  function countDown() {
    for (const each of main.querySelectorAll("span[data-left]")) {
      const left = Math.ceil((each.dataset.left - (performance.now() - shownAt)) / 1000);
      const minutes = left >= 60 ? `${Math.floor(left / 60)} min ` : "";
      each.textContent = left > 0 ? `${minutes}${left % 60} s` : "over";
    }
  }

  function listen() {
    const wanted = main.dataset.live;
    if (!wanted) return;
    const events = new EventSource(`/events?${wanted}`);
    events.addEventListener("changed", () => { timer ??= setTimeout(reload, PAUSE_MS); });
    addEventListener("pagehide", () => events.close());
    // What was held back while the page was hidden, or while a frame was open, comes now.
    document.addEventListener("visibilitychange", reload);
    main.addEventListener("toggle", (event) => { if (event.target.matches("details.frame")) reload(); }, true);
  }

  function setUpPause() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "tool pause";
    const show = () => {
      button.textContent = isPaused ? "▶" : "❚❚";
      button.setAttribute("aria-label", isPaused ? "Resume live updates" : "Pause live updates");
      button.title = button.getAttribute("aria-label");
    };
    button.addEventListener("click", () => {
      isPaused = !isPaused;
      show();
      if (!isPaused) reload();
    });
    show();
    document.querySelector(".top .theme")?.before(button);
    return button;
  }

  const targets = { o: "/", t: "/topics", g: "/groups", n: "/nodes", q: "/quorum", w: "/wire", l: "/live", p: "/pipeline" };

  function setUpKeys(pause) {
    let isGoing = false;
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (isGoing) {
        isGoing = false;
        if (targets[event.key]) location.href = targets[event.key];
      } else if (event.key === "g") {
        isGoing = true;
        setTimeout(() => { isGoing = false; }, 1000);
      } else if (event.key === "p") {
        pause?.click();
      } else if (event.key === "/") {
        const box = main.querySelector("input[type=search]");
        if (box) {
          event.preventDefault();
          box.focus();
        }
      }
    });
  }

  // A link to the same page, shown in another way, does not lose the reader's place.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[data-stay]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    history.replaceState(null, "", link.getAttribute("href"));
    if (!(await load(() => false))) location.reload();
  });
  document.addEventListener("click", (event) => {
    const text = event.target.closest?.("[data-copy]")?.dataset.copy;
    if (text) navigator.clipboard?.writeText(text);
  });
  const pause = main.dataset.live || main.dataset.reload ? setUpPause() : null;
  showSection();
  setUpWalks();
  setUpClocks();
  listen();
  setInterval(countDown, 500);
  if (main.dataset.reload) setInterval(reload, 1000 * main.dataset.reload);
  setUpKeys(pause);
})();
