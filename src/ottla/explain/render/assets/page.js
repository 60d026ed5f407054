// What belongs together lights up together: bytes, tree, diagram and schema.
"use strict";
(() => {
  const fieldOf = (path) => path.replace(/\[\d+\]/g, "[]");
  const isBelow = (path, above) =>
    path === above || (path.startsWith(above) && ".[ ".includes(path[above.length]));

  // --- one page: its bytes, its tree and the rows about its fields ---

  class Linked {
    constructor(page) {
      this.page = page;
      this.panel = page.querySelector(".panel");
      this.hex = page.querySelector(".hex");
      this.told = page.querySelector(".told-bytes");
      this.hint = this.told.textContent;
      this.told.hidden = false;
      this.bytes = [...this.hex.querySelectorAll("[data-path]")];
      this.spans = this.bytes.filter((piece) => piece.dataset.note);
      this.nodes = [...page.querySelectorAll(".node")];
      this.rows = [...page.querySelectorAll("[data-field]")];
      this.nodeOf = new Map(this.nodes.map((node) => [node.dataset.path, node]));
      this.aboutOf = new Map(
        [...page.querySelectorAll("tr[data-field]")].map((row) => [row.dataset.field, row.cells[2].textContent.trim()]),
      );
      this.pinned = null;
      this.upgrade();
      this.listen();
    }

    // Roles and focus come with the script, since without it there is nothing to choose.
    upgrade() {
      this.hex.setAttribute("role", "listbox");
      this.hex.setAttribute("aria-label", "Bytes, one entry for each field");
      for (const part of this.hex.querySelectorAll(".row, .half")) part.setAttribute("role", "none");
      for (const offset of this.hex.querySelectorAll(".at")) offset.setAttribute("aria-hidden", "true");
      for (const piece of this.bytes) {
        if (piece.dataset.note) {
          piece.setAttribute("role", "option");
          piece.setAttribute("aria-label", piece.dataset.note);
          piece.setAttribute("aria-selected", "false");
          piece.tabIndex = -1;
        } else {
          piece.setAttribute("aria-hidden", "true");
        }
      }
      const tree = this.page.querySelector(".tree");
      tree.setAttribute("role", "tree");
      tree.setAttribute("aria-label", "Fields of the example");
      for (const list of tree.querySelectorAll("ul")) list.setAttribute("role", "group");
      for (const item of tree.querySelectorAll("li")) item.setAttribute("role", "none");
      for (const node of this.nodes) {
        node.setAttribute("role", "treeitem");
        node.setAttribute("aria-selected", "false");
        node.setAttribute("aria-level", String(this.depthOf(node)));
        node.tabIndex = -1;
      }
      this.spans[0].tabIndex = 0;
      this.nodes[0].tabIndex = 0;
    }

    depthOf(node) {
      let depth = 0;
      for (let list = node.closest("ul"); list; list = list.parentElement.closest("ul")) depth += 1;
      return depth;
    }

    listen() {
      for (const part of [this.hex, this.page.querySelector(".tree")]) {
        part.addEventListener("mouseover", (event) => this.show(this.target(event), true));
        part.addEventListener("mouseleave", () => this.rest());
        part.addEventListener("focusin", (event) => this.show(this.target(event), true));
        part.addEventListener("focusout", () => this.rest());
        part.addEventListener("click", (event) => this.pin(this.target(event)));
        part.addEventListener("keydown", (event) => this.key(event));
      }
      for (const row of this.rows) {
        row.addEventListener("mouseenter", () => this.mark((path) => isBelow(fieldOf(path), row.dataset.field)));
        row.addEventListener("mouseleave", () => this.rest());
      }
      window.addEventListener("hashchange", () => this.fromAddress());
      this.fromAddress();
    }

    target(event) {
      return event.target.closest("[data-path]");
    }

    show(part, isScrolled) {
      if (!part) return;
      const path = part.dataset.path;
      this.mark((other) => isBelow(other, path), path);
      this.tell(part);
      if (isScrolled && part.classList.contains("node")) this.reveal(path);
    }

    mark(holds, path) {
      for (const piece of this.bytes) piece.classList.toggle("on", holds(piece.dataset.path));
      for (const node of this.nodes) node.classList.toggle("on", path ? node.dataset.path === path : holds(node.dataset.path));
      const field = path && fieldOf(path);
      for (const row of this.rows) row.classList.toggle("on", field === row.dataset.field);
    }

    // Back to what is pinned, or to nothing.
    rest() {
      if (this.pinned) this.show(this.pinned, false);
      else {
        this.mark(() => false);
        this.told.replaceChildren(this.hint);
      }
    }

    tell(part) {
      const path = part.dataset.path;
      const node = this.nodeOf.get(path);
      const [start, end] = node.dataset.at.split("-").map(Number);
      const size = end - start;
      const hex = (at) => `0x${at.toString(16).padStart(4, "0")}`;
      const where = size === 1 ? `${hex(start)}, 1 byte` : `${hex(start)} to ${hex(end - 1)}, ${size} bytes`;
      const line = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
      const text = (kind) => node.querySelector(kind)?.textContent || "";
      const value = text(".v");
      const name = path.includes(".") ? path.slice(path.indexOf(".") + 1).replace(/ tags$/, " tagged fields") : path;
      const sign = value.startsWith("×") ? " " : " = ";
      const lines = [line("strong", value ? name + sign + value : name)];
      lines.push(line("span", [text(".t"), where].filter(Boolean).join(" · ")));
      const note = part.classList.contains("dim") && part.dataset.note;
      const about = this.aboutOf.get(fieldOf(path));
      if (note) lines.push(line("span", `Here: ${note}`));
      else if (about) lines.push(line("span", about));
      this.told.replaceChildren(...lines);
    }

    reveal(path) {
      const piece = this.bytes.find((other) => isBelow(other.dataset.path, path));
      if (!piece) return;
      const top = piece.offsetTop - this.hex.offsetTop;
      if (top < this.hex.scrollTop || top > this.hex.scrollTop + this.hex.clientHeight - 40) {
        this.hex.scrollTop = top - this.hex.clientHeight / 3;
      }
    }

    pin(part) {
      if (!part) return;
      this.select(this.pinned, "false");
      this.pinned = this.pinned && this.pinned.dataset.path === part.dataset.path ? null : part;
      this.select(this.pinned, "true");
      this.rest();
      const address = this.pinned ? `#at-${this.pinned.dataset.path}` : location.pathname + location.search;
      try {
        history.replaceState(null, "", address);
      } catch {
        // Some viewers of local files do not allow it; the mark is there all the same.
      }
    }

    select(part, state) {
      if (!part) return;
      const path = part.dataset.path;
      for (const other of [...this.spans, ...this.nodes]) {
        if (other.dataset.path === path) other.setAttribute("aria-selected", state);
      }
    }

    fromAddress() {
      const hash = decodeURIComponent(location.hash);
      const node = hash.startsWith("#at-") && this.nodeOf.get(hash.slice(4));
      if (!node) return;
      this.pinned = null;
      this.pin(node);
      this.reveal(node.dataset.path);
      this.page.querySelector(".example").scrollIntoView({ block: "start", behavior: "instant" });
    }

    // --- keys ---

    key(event) {
      const part = this.target(event);
      if (!part || event.ctrlKey || event.metaKey || event.altKey) return;
      const isTree = part.classList.contains("node");
      const next = isTree ? this.besideNode(part, event.key) : this.besideBytes(part, event.key);
      if (next) {
        part.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      } else if (event.key === "Enter" || event.key === " ") this.pin(part);
      else if (event.key === "Escape") this.pinned && this.pin(this.pinned);
      else if (event.key === "c") copy(part.dataset.path);
      else if (event.key === "y") copy(this.bytesOf(part.dataset.path));
      else return;
      event.preventDefault();
    }

    besideNode(node, key) {
      const at = this.nodes.indexOf(node);
      const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.nodes.length - 1, n: at + 1, p: at - 1 };
      if (key in steps) return this.nodes[steps[key]];
      if (key === "ArrowLeft") return node.closest("ul").parentElement.querySelector(":scope > .node");
      if (key === "ArrowRight") return node.parentElement.querySelector(":scope > ul .node");
      return null;
    }

    besideBytes(piece, key) {
      const at = this.spans.indexOf(piece);
      const last = this.spans.length - 1;
      const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last, n: at + 1, p: at - 1 };
      if (key in steps) return this.spans[steps[key]];
      if (key !== "ArrowDown" && key !== "ArrowUp") return null;
      const { left, top } = piece.getBoundingClientRect();
      const isFound = (other) => {
        const box = other.getBoundingClientRect();
        return key === "ArrowDown" ? box.top > top + 4 && box.right > left : box.top < top - 4 && box.left <= left;
      };
      return key === "ArrowDown" ? this.spans.find(isFound) : this.spans.findLast(isFound);
    }

    bytesOf(path) {
      return this.bytes.filter((piece) => isBelow(piece.dataset.path, path)).map((piece) => piece.textContent).join(" ");
    }
  }

  function copy(text) {
    navigator.clipboard?.writeText(text);
  }

  function setUpCopy(details) {
    if (!navigator.clipboard) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
    const code = details.querySelector("code");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    details.querySelector("pre").prepend(button);
  }

  document.querySelectorAll(".copies details").forEach(setUpCopy);
  for (const page of document.querySelectorAll(".page")) if (page.querySelector(".panel")) new Linked(page);
})();
