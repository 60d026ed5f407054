// Live updates: when the server says that something on this page has changed, the page is loaded anew and its content
// replaced, at most every two seconds, and never while the reader types, selects or has paused.
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
    return types || String(getSelection()) !== "";
  }

  async function reload() {
    timer = null;
    if (isPaused || document.hidden || isBusy()) return;
    let answer;
    try {
      answer = await fetch(location.href, { headers: { accept: "text/html" } });
    } catch {
      return; // The console is away for a moment; the next event brings it back.
    }
    if (!answer.ok) return;
    if (answer.redirected && new URL(answer.url).pathname === "/login") {
      location.reload();
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("main");
    if (next) replace(next);
    const bar = page.querySelector(".sections");
    if (bar) document.querySelector(".sections")?.replaceWith(bar);
  }

  // Folded parts stay as the reader has left them, and the focus stays where it was.
  function replace(next) {
    const open = [...main.querySelectorAll("details")].map((each) => each.open);
    next.querySelectorAll("details").forEach((each, at) => { if (open[at]) each.open = true; });
    const focused = document.activeElement;
    const path = focused && main.contains(focused) ? place(focused) : null;
    main.replaceChildren(...next.childNodes);
    for (const name of ["live"]) if (next.dataset[name]) main.dataset[name] = next.dataset[name];
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

  function listen() {
    const wanted = main.dataset.live;
    if (!wanted) return;
    const events = new EventSource(`/events?${wanted}`);
    events.addEventListener("changed", () => { timer ??= setTimeout(reload, PAUSE_MS); });
    addEventListener("pagehide", () => events.close());
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

  const targets = { o: "/", t: "/topics", g: "/groups", n: "/nodes", q: "/quorum", w: "/wire", p: "/pipeline" };

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

  document.addEventListener("click", (event) => {
    const text = event.target.closest?.("[data-copy]")?.dataset.copy;
    if (text) navigator.clipboard?.writeText(text);
  });
  const pause = main.dataset.live || main.dataset.reload ? setUpPause() : null;
  listen();
  if (main.dataset.reload) setInterval(reload, 1000 * main.dataset.reload);
  setUpKeys(pause);
})();
