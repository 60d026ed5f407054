// Search in all pages, and filter the list of them. The index is loaded as a script when it is first needed, because a
// page from a disk may not read other files in any other way.
"use strict";
(() => {
  const root = document.documentElement.dataset.root || "";
  const RESULTS_MAX = 12;

  const make = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };

  // --- ranking ---

  // StreamsGroupHeartbeat is found by "sgh", too.
  const humps = (name) => name.replace(/[^A-Z0-9]/g, "").toLowerCase();

  // How well `word` fits a name: 0 not at all; all comparisons in small letters, without _ and -.
  function fit(word, name) {
    const plain = name.toLowerCase().replace(/[_-]/g, "");
    if (plain === word) return 100;
    if (plain.startsWith(word)) return 80 - Math.min(plain.length - word.length, 30);
    const at = plain.indexOf(word);
    if (at > 0) return 40 - Math.min(plain.length - word.length, 30) / 2;
    if (word.length > 1 && humps(name).startsWith(word)) return 30;
    return 0;
  }

  function fitAll(words, ...names) {
    let sum = 0;
    for (const word of words) {
      const best = Math.max(...names.map((name) => fit(word, name)));
      if (!best) return 0;
      sum += best;
    }
    return sum / words.length;
  }

  function findMessages(words, index) {
    const found = [];
    for (const [name, key, stem, version, summary, kips] of index.messages) {
      const api = name.replace(/(Request|Response)$/, "");
      const isKey = words.length === 1 && stem.startsWith("api/") && String(key) === words[0];
      const names = words.some((word) => word.startsWith("kip")) ? [name, api, ...kips] : [name, api];
      const score = isKey ? 110 : fitAll(words, ...names);
      const about = key !== null && stem.startsWith("api/") ? `key ${key} · ${summary}` : summary;
      if (score) found.push({ score, name: `${name} v${version}`, about, to: `${stem}${version}.html` });
    }
    return found;
  }

  function findFields(words, index) {
    const found = [];
    for (const [name, , stem, , , , versions] of index.messages) {
      for (const [version, ...fields] of versions) {
        for (const path of fields) {
          const last = path.slice(path.lastIndexOf(".") + 1);
          const own = fitAll(words, last);
          const score = own || (words.length > 1 && fitAll(words, last, name) ? 20 : 0);
          if (score) found.push({ score, name: path, about: `${name} v${version}`, to: `${stem}${version}.html#f-${path}` });
        }
      }
    }
    return found;
  }

  function findErrors(words, index) {
    const found = [];
    for (const [code, name, exception, meaning] of index.errors) {
      const isCode = words.length === 1 && String(code) === words[0];
      const score = isCode ? 110 : fitAll(words, name, exception);
      if (score) found.push({ score, name: `${name} (${code})`, about: meaning, to: `error/${name}.html` });
    }
    return found;
  }

  // Pages in prose: by the words of their headings, else by all words of a section.
  function findPages(words, index) {
    const found = [];
    for (const [path, title, sections] of index.pages) {
      for (const [anchor, heading, text] of sections) {
        const named = fitAll(words, ...heading.split(/[^\w-]+/), ...title.split(/[^\w-]+/));
        const score = named ? named + (anchor ? 0 : 5) : words.every((word) => text.includes(` ${word}`)) ? 20 : 0;
        const to = anchor ? `${path}#${anchor}` : path;
        if (score) found.push({ score, name: heading, about: anchor ? title : "", to });
      }
    }
    return found;
  }

  function best(title, found) {
    const count = found.length;
    found.sort((a, b) => b.score - a.score || a.name.length - b.name.length);
    return [count > RESULTS_MAX ? `${title}: the best ${RESULTS_MAX} of ${count}` : title, found.slice(0, RESULTS_MAX)];
  }

  function find(text, index) {
    const words = text.toLowerCase().replace(/(?<=[a-z])[_-]/g, "").split(/[\s.]+/).filter(Boolean);
    if (!words.length) return [];
    const groups = [
      best("Pages", findPages(words, index)),
      best("Messages", findMessages(words, index)),
      best("Errors", findErrors(words, index)),
      best("Fields", findFields(words, index)),
    ];
    return groups.filter(([, found]) => found.length).sort((a, b) => b[1][0].score - a[1][0].score);
  }

  // --- the search box ---

  let loading = null;
  function loadIndex() {
    loading ||= new Promise((resolve) => {
      const script = make("script", undefined, { src: `${root}assets/search-index.js` });
      script.addEventListener("load", () => resolve(window.ottlaIndex));
      document.head.append(script);
    });
    return loading;
  }

  function setUpSearch(region) {
    const box = region.querySelector("input");
    const hits = region.querySelector("ul");
    let options = [];
    let chosen = -1;
    region.hidden = false;

    function choose(at) {
      options[chosen]?.setAttribute("aria-selected", "false");
      chosen = options.length ? (at + options.length) % options.length : -1;
      const option = options[chosen];
      if (!option) return box.removeAttribute("aria-activedescendant");
      option.setAttribute("aria-selected", "true");
      option.scrollIntoView({ block: "nearest" });
      box.setAttribute("aria-activedescendant", option.id);
    }

    function close() {
      hits.hidden = true;
      box.setAttribute("aria-expanded", "false");
      box.removeAttribute("aria-activedescendant");
    }

    async function search() {
      const text = box.value.trim();
      const index = await loadIndex();
      if (text !== box.value.trim()) return;
      const groups = find(text, index);
      hits.replaceChildren();
      for (const [title, found] of groups) {
        hits.append(make("li", title, { role: "presentation" }));
        for (const hit of found) {
          const option = make("li", undefined, { role: "option", "aria-selected": "false", id: `hit-${hits.children.length}` });
          option.dataset.to = hit.to;
          option.append(make("b", hit.name), make("small", hit.about));
          hits.append(option);
        }
      }
      if (text && !groups.length) hits.append(make("li", `Nothing is called “${text}”.`, { class: "none", role: "presentation" }));
      options = [...hits.querySelectorAll('[role="option"]')];
      chosen = -1;
      hits.hidden = !text;
      box.setAttribute("aria-expanded", String(Boolean(text)));
      if (options.length) choose(0);
    }

    let searching = Promise.resolve();
    const start = () => (searching = search());

    const go = (option) => {
      if (!option) return;
      close();
      location.href = root + option.dataset.to;
    };

    box.addEventListener("focus", loadIndex, { once: true });
    box.addEventListener("input", start);
    box.addEventListener("focus", () => box.value.trim() && start());
    box.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") choose(chosen + 1);
      else if (event.key === "ArrowUp") choose(chosen - 1);
      else if (event.key === "Enter") searching.then(() => go(options[chosen]));
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
    });
    hits.addEventListener("mousedown", (event) => event.preventDefault());
    hits.addEventListener("click", (event) => go(event.target.closest('[role="option"]')));
    document.addEventListener("click", (event) => region.contains(event.target) || close());
    region.addEventListener("focusout", (event) => region.contains(event.relatedTarget) || close());
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.closest("input, textarea") || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      box.focus();
    });
  }

  // --- the list of all pages ---

  function setUpFilter(form) {
    const box = form.querySelector("input");
    const buttons = [...form.querySelectorAll("button")];
    const rows = [...document.querySelectorAll("tr[data-find]")];
    const nothing = document.querySelector(".nothing");
    form.hidden = false;

    function apply() {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      const group = buttons.find((button) => button.getAttribute("aria-pressed") === "true")?.dataset.group;
      let count = 0;
      for (const row of rows) {
        const text = row.dataset.find;
        // A number means a key or a code as a whole: "7" is not 78.
        const holds = (word) => (/^-?\d+$/.test(word) ? text.split(" ").includes(word) : text.includes(word));
        row.hidden = !(words.every(holds) && (!group || row.dataset.group === group));
        count += !row.hidden;
      }
      for (const part of document.querySelectorAll(".family, .list > section")) {
        part.hidden = !part.querySelector("tr[data-find]:not([hidden])");
      }
      nothing.hidden = count > 0;
    }

    box.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const state = button.getAttribute("aria-pressed") !== "true";
        for (const other of buttons) other.setAttribute("aria-pressed", String(state && other === button));
        apply();
      });
    }
    apply();
  }

  document.querySelectorAll("search").forEach(setUpSearch);
  document.querySelectorAll("form.filter").forEach(setUpFilter);
})();
