// A virtualized tree: only visible rows are in the document, so it may have any number of rows.

import { severity } from "./color.js";
import { choice, fill, make } from "./dom.js";
import { plural } from "./format.js";

const ROW = 24;
// Maximum milliseconds between the clicks of a double click. The browser cannot detect it, since the first click
// redraws the row.
const DOUBLE_CLICK = 450;
// Number of search results that are expanded.
const FOUND = 200;

/**
 * What a tree shows, and what happens when a node is chosen.
 *
 * @typedef {object} TreeOptions
 * @property {import("./model.js").Forest} forest
 * @property {(node: number) => string} label
 * @property {(node: number) => any} hint
 * @property {(node: number, open: boolean) => number | null} value null for nothing to show
 * @property {(value: number, node: number) => any} text
 * @property {(node: number, open: boolean) => void} choose
 * @property {(node: number) => any} [group] colors compare values of one group
 * @property {(node: number) => boolean} [keep] shown even without a value
 */

export class TreeView {
  /**
   * @param {string} title
   * @param {TreeOptions} options
   */
  constructor(title, options) {
    this.forest = options.forest;
    this.label = options.label;
    this.hint = options.hint;
    this.value = options.value;
    this.text = options.text;
    this.choose = options.choose;
    this.group = options.group;
    this.keep = options.keep;
    this.title = title;
    this.expanded = new Set();
    this.selected = -1;
    this.order = "tree";
    this.hideZero = true;
    this.rows = [];
    this.found = [];
    this.query = "";
    this.names = Array.from({ length: this.forest.size }, (_, node) => this.label(node).toLowerCase());
    this.build();
  }

  build() {
    const id = this.title.toLowerCase().replace(/\W+/g, "-");
    this.id = id;
    this.space = make("div", { class: "space" });
    this.scroller = make("div", {
      class: "rows", role: "tree", tabindex: "0", id: `tree-${id}`, "aria-label": this.title,
      onscroll: () => this.paintSoon(), onkeydown: (event) => this.key(event), onclick: (event) => this.click(event),
    }, this.space);
    this.searchBox = make("input", {
      type: "search", placeholder: "Find", "aria-label": `Find in ${this.title}`, spellcheck: "false",
      oninput: () => this.search(this.searchBox.value), onkeydown: (event) => this.searchKey(event),
    });
    this.count = make("span", { class: "count", "aria-live": "polite" });
    this.note = make("p", { class: "note" });
    this.node = make("section", { class: "pane", "aria-label": this.title },
      make("header", {}, make("h2", {}, this.title), make("label", { class: "find" }, this.searchBox, this.count)),
      this.scroller, this.note);
    new ResizeObserver(() => this.paintSoon()).observe(this.scroller);
  }

  repaint() {
    if (this.rowOf) this.refresh();
  }

  // Expands the ancestors of a node, selects it, and scrolls it into view.
  reveal(node, expand = null) {
    for (const above of this.forest.above(node)) this.expanded.add(above);
    if (expand === true && this.forest.children[node].length) this.expanded.add(node);
    if (expand === false) this.expanded.delete(node);
    this.selected = node;
    this.refresh();
    this.bringIntoSight();
  }

  // The references of colors, and the rows without a value.
  size(value) { return value; }

  isEmpty(node, whole) { return whole === 0 && !this.keep?.(node); }

  isOpen(node) {
    return this.expanded.has(node) && this.forest.children[node].length > 0;
  }

  refresh() {
    const { children, roots } = this.forest;
    this.whole = new Map();
    const whole = (node) => {
      if (!this.whole.has(node)) this.whole.set(node, this.value(node, false) ?? 0);
      return this.whole.get(node);
    };
    const keep = new Set();
    for (const node of [...(this.selected >= 0 ? [this.selected] : []), ...this.found.slice(0, FOUND)]) {
      keep.add(node);
      for (const above of this.forest.above(node)) keep.add(above);
    }
    const arranged = (nodes) => {
      const shown = this.hideZero ? nodes.filter((node) => !this.isEmpty(node, whole(node)) || keep.has(node)) : nodes.slice();
      if (this.order === "value") shown.sort((a, b) => this.size(whole(b)) - this.size(whole(a)));
      if (this.order === "name") shown.sort((a, b) => this.names[a].localeCompare(this.names[b], "en", { numeric: true }));
      return shown;
    };
    this.rows = [];
    const stack = arranged(roots).reverse().map((node) => ({ node, depth: 0 }));
    while (stack.length) {
      const row = stack.pop();
      this.rows.push(row);
      if (this.isOpen(row.node)) {
        for (const child of arranged(children[row.node]).reverse()) stack.push({ node: child, depth: row.depth + 1 });
      }
    }
    // Colors compare values of the same unit: the metrics below one root, or all nodes of the other trees.
    this.largest = new Map();
    for (const row of this.rows) {
      row.open = this.isOpen(row.node);
      row.value = this.value(row.node, row.open);
      const group = this.group?.(row.node);
      this.largest.set(group, Math.max(this.largest.get(group) ?? 0, Math.abs(row.value ?? 0)));
    }
    this.rowOf = new Map(this.rows.map((row, at) => [row.node, at]));
    this.space.style.height = `${this.rows.length * ROW}px`;
    this.paint();
  }

  paintSoon() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.paint(); });
  }

  paint() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 4);
    const last = Math.min(this.rows.length, first + Math.ceil((this.scroller.clientHeight || 600) / ROW) + 8);
    fill(this.space, this.rows.slice(first, last).map((row, i) => this.row(row, first + i)));
    const at = this.rowOf?.get(this.selected);
    if (at === undefined) this.scroller.removeAttribute("aria-activedescendant");
    else this.scroller.setAttribute("aria-activedescendant", `${this.id}-${this.selected}`);
  }

  row({ node, depth, open, value }, at) {
    const share = Math.abs(value ?? 0) / (this.largest.get(this.group?.(node)) || 1);
    const inner = this.forest.children[node].length > 0;
    return make("div", {
      class: "row", role: "treeitem", id: `${this.id}-${node}`, "data-node": node, "aria-level": depth + 1,
      "aria-selected": String(node === this.selected), "aria-expanded": inner ? String(open) : undefined,
      style: { top: `${at * ROW}px`, "--depth": depth }, title: this.hint(node),
    },
      make("span", { class: inner ? "twist" : "twist none", "aria-hidden": "true" }),
      make("i", { class: "chip", style: { background: value ? severity(share) : "transparent" } }),
      make("span", { class: "name" }, this.marked(node)),
      make("span", { class: value ? "value" : "value zero" }, value === null ? "" : this.text(value, node)));
  }

  marked(node) {
    const text = this.label(node);
    const at = this.query ? this.names[node].indexOf(this.query) : -1;
    if (at < 0) return text;
    return [text.slice(0, at), make("mark", {}, text.slice(at, at + this.query.length)), text.slice(at + this.query.length)];
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    const node = Number(row.dataset.node);
    if (event.target.closest(".twist:not(.none)")) this.toggle(node);
    else if (this.clicked?.node === node && event.timeStamp - this.clicked.time < DOUBLE_CLICK) this.toggle(node);
    else this.select(node);
    this.clicked = { node, time: event.timeStamp };
  }

  toggle(node) {
    if (!this.forest.children[node].length) return;
    if (this.expanded.has(node)) this.expanded.delete(node);
    else this.expanded.add(node);
    // The selected row must stay visible.
    if (!this.isOpen(node) && this.forest.above(this.selected).includes(node)) this.selected = node;
    this.refresh();
    if (node === this.selected) this.choose(node, this.isOpen(node));
  }

  select(node) {
    this.selected = node;
    this.paint();
    this.bringIntoSight();
    this.choose(node, this.isOpen(node));
  }

  bringIntoSight() {
    const at = this.rowOf.get(this.selected);
    if (at === undefined) return;
    const { scrollTop, clientHeight } = this.scroller;
    if (at * ROW < scrollTop) this.scroller.scrollTop = at * ROW;
    else if ((at + 1) * ROW > scrollTop + clientHeight) this.scroller.scrollTop = (at + 1) * ROW - clientHeight;
    this.paint();
  }

  // Follows the largest value down to its origin.
  followLargest() {
    let node = this.selected >= 0 ? this.selected : this.forest.roots[0];
    for (;;) {
      const children = this.forest.children[node];
      if (!children.length) break;
      const whole = (child) => this.size(this.value(child, false) ?? 0);
      const best = children.reduce((a, b) => (whole(b) > whole(a) ? b : a));
      if (!(whole(best) > this.size(this.value(node, true) ?? 0))) break;
      this.expanded.add(node);
      node = best;
    }
    this.reveal(node);
    this.choose(node, this.isOpen(node));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rows.length) return;
    const at = this.rowOf.get(this.selected) ?? 0;
    const { node } = this.rows[at];
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const go = (to) => this.select(this.rows[Math.max(0, Math.min(this.rows.length - 1, to))].node);
    const actions = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + page),
      PageUp: () => go(at - page),
      Home: () => go(0),
      End: () => go(this.rows.length - 1),
      ArrowRight: () => (this.isOpen(node) ? go(at + 1) : this.toggle(node)),
      ArrowLeft: () => {
        if (this.isOpen(node)) this.toggle(node);
        else if (this.forest.parent[node] >= 0) this.select(this.forest.parent[node]);
      },
      Enter: () => this.toggle(node),
      " ": () => this.toggle(node),
      "/": () => this.searchBox.focus(),
      h: () => this.followLargest(),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  search(text) {
    this.query = text.trim().toLowerCase();
    this.found = this.query ? this.names.flatMap((name, node) => (name.includes(this.query) ? [node] : [])) : [];
    this.foundAt = -1;
    this.count.textContent = this.query ? plural(this.found.length, "match").replace("matchs", "matches") : "";
    for (const node of this.found.slice(0, FOUND)) for (const above of this.forest.above(node)) this.expanded.add(above);
    if (this.found.length) this.step(1);
    else this.refresh();
  }

  step(by) {
    if (!this.found.length) return;
    this.foundAt = (this.foundAt + by + this.found.length) % this.found.length;
    this.count.textContent = `${this.foundAt + 1} of ${this.found.length}`;
    this.reveal(this.found[this.foundAt]);
    this.choose(this.selected, this.isOpen(this.selected));
  }

  searchKey(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.searchBox.value = "";
      this.search("");
      this.scroller.focus();
    } else return;
    event.preventDefault();
  }
}

// Keys of trees, for the help.
/** @type {[string, string][]} */
export const TREE_KEYS = [
  ["↑ ↓", "previous, next row"],
  ["→ ←", "expand, collapse; move to the first child, to the parent"],
  ["Enter, Space", "expand or collapse"],
  ["Home, End, Page", "first row, last row, one page"],
  ["/", "search this tree; Enter: next match, Escape: end the search"],
];

const ORDERS = [
  ["tree", "Tree order", "In the order of the run"], ["value", "Largest first", "By value, with all below"], ["name", "By name", "Alphabetically"],
];

// A view of trees side by side, of which the second one is the call tree.
export class Trees {
  constructor() {
    /** @type {TreeView[]} */
    this.views = [];
  }

  // Hooks: the selection to begin with, and to show the selection of an address, or the current one again.
  /** @returns {Record<string, any>} */
  start() { return {}; }

  /** @param {URLSearchParams} _place */
  restore(_place) {}

  reselect() {}

  // Shows the place of an address; without one, what was selected before.
  follow(place) {
    if (place.has("metric")) this.restore(place);
    else if (this.been) this.reselect();
    else this.restore(new URLSearchParams(this.start()));
    this.been = true;
  }

  // The tools of all trees; `empty`: the rows that are hidden at first.
  tools(empty, hint) {
    const change = (set) => { for (const view of this.views) { set(view); view.refresh(); view.bringIntoSight(); } };
    const box = make("input", { type: "checkbox", onchange: () => change((view) => { view.hideZero = !box.checked; }) });
    return [
      choice("Order", ORDERS, "tree", (order) => change((view) => { view.order = order; })).node,
      make("label", { class: "check" }, box, `show ${empty}`),
      make("button", { type: "button", title: hint, onclick: () => this.views[1].followLargest() }, "Follow the largest"),
    ];
  }

  get actions() {
    const current = () => this.views.find((view) => view.node.contains(document.activeElement)) ?? this.views[1];
    return {
      ...Object.fromEntries(this.views.map((view, i) => [i + 1, () => view.scroller.focus()])),
      "/": () => current().searchBox.focus(), h: () => this.views[1].followLargest(),
    };
  }

  repaint() {
    for (const view of this.views) view.repaint();
  }
}
