// An icicle: each function as a box below its caller, as wide as its time. A click shows one function at full width.

import { fill, make, tip } from "./dom.js";

// Narrower boxes are left out.
const NARROWEST = 0.0015;
const ROW_HEIGHT = 22;
// Boxes of this share of the width have a label.
const LABEL_FROM = 0.02;

/**
 * What an icicle shows; callers come before what they call.
 *
 * @typedef {object} Boxes
 * @property {ArrayLike<number>} parent the number of the caller, or -1
 * @property {ArrayLike<number>} width with what it calls
 * @property {(box: number) => string} name
 * @property {(box: number) => string} text the values of a box in words
 * @property {(box: number) => { style?: Record<string, string>, class?: string }} look
 * @property {(box: number) => any[]} tooltip
 */

export class Icicle {
  /**
   * @param {string} label
   * @param {(box: number) => void} [chosen] is told of the box that is shown at full width, -1 for all
   */
  constructor(label, chosen = () => {}) {
    this.chosen = chosen;
    /** @type {Boxes | null} */
    this.boxes = null;
    this.top = -1;
    this.query = "";
    this.plane = make("div", { class: "boxes", role: "group", "aria-label": label, onkeydown: (event) => this.key(event), onmouseleave: () => tip.hide() });
    this.picked = make("p", { class: "hint", role: "status" });
    this.node = make("div", { class: "icicle" }, this.plane, this.picked);
  }

  /** @param {Boxes} boxes */
  show(boxes, top = -1) {
    this.boxes = boxes;
    this.below = Array.from(boxes.parent, () => []);
    this.roots = [];
    Array.from(boxes.parent).forEach((parent, box) => (parent < 0 ? this.roots : this.below[parent]).push(box));
    for (const list of [this.roots, ...this.below]) list.sort((a, b) => boxes.width[b] - boxes.width[a]);
    this.top = top >= 0 && boxes.width[top] > 0 ? top : -1;
    this.draw();
  }

  get whole() {
    const { width } = this.boxes;
    return this.top >= 0 ? width[this.top] : this.roots.reduce((sum, box) => sum + width[box], 0);
  }

  // The boxes to draw, from the outermost to the innermost: number, left edge and width as shares, row.
  layout() {
    const { boxes, whole } = this;
    const found = [];
    if (!(whole > 0)) return found;
    const around = [];
    for (let box = this.top; box >= 0; box = boxes.parent[box]) around.unshift(box);
    around.forEach((box, row) => found.push({ box, left: 0, share: 1, row }));
    const place = (list, left, row) => {
      for (const box of list) {
        const share = boxes.width[box] / whole;
        if (share < NARROWEST) break;
        found.push({ box, left, share, row });
        place(this.below[box], left, row + 1);
        left += share;
      }
    };
    place(this.top >= 0 ? this.below[this.top] : this.roots, 0, around.length);
    return found;
  }

  draw() {
    const { boxes, query } = this;
    this.drawn = this.layout();
    const rows = this.drawn.reduce((most, { row }) => Math.max(most, row + 1), 1);
    this.plane.style.height = `${rows * ROW_HEIGHT}px`;
    this.buttons = new Map();
    fill(this.plane, this.drawn.map(({ box, left, share, row }, number) => {
      const name = boxes.name(box);
      const { style, class: look } = boxes.look(box);
      const isFound = query && name.toLowerCase().includes(query);
      const button = make("button", {
        type: "button", tabindex: number ? "-1" : "0", "data-box": box, "aria-label": `${name}: ${boxes.text(box)}`,
        class: [look, query && (isFound ? "found" : "other")].filter(Boolean).join(" ") || undefined,
        style: { ...style, left: `${100 * left}%`, width: `${100 * share}%`, top: `${row * ROW_HEIGHT}px` },
        onclick: () => this.choose(box), onmousemove: (event) => tip.show(event, boxes.tooltip(box)), onfocus: () => this.tell(box),
      }, share >= LABEL_FROM && name);
      this.buttons.set(box, button);
      return button;
    }));
    if (!this.drawn.length) fill(this.plane, make("p", { class: "hint" }, "There is nothing to show."));
  }

  // Shows a box at full width, or its caller again if it is.
  choose(box) {
    tip.hide();
    this.top = box === this.top ? this.boxes.parent[box] : box;
    this.draw();
    (this.buttons.get(box) ?? this.plane.firstElementChild)?.focus();
    this.chosen(this.top);
  }

  all() {
    this.top = -1;
    this.draw();
    this.chosen(-1);
  }

  tell(box) {
    for (const button of this.buttons.values()) button.tabIndex = -1;
    this.buttons.get(box).tabIndex = 0;
    fill(this.picked, make("b", {}, this.boxes.name(box)), ` ${this.boxes.text(box)}`);
  }

  // Arrow keys lead to the caller, to the largest function that is called, and to the functions beside.
  key(event) {
    const box = Number(event.target.dataset?.box ?? -1);
    const { parent } = this.boxes;
    if (box < 0) return;
    const beside = parent[box] < 0 ? this.roots : this.below[parent[box]];
    const to = { ArrowUp: parent[box], ArrowDown: this.below[box][0], ArrowRight: beside[beside.indexOf(box) + 1], ArrowLeft: beside[beside.indexOf(box) - 1] }[event.key];
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      this.buttons.get(to)?.focus();
    }
  }

  // Marks the functions with a name; returns how many there are, and their share of the time.
  find(query) {
    this.query = query.trim().toLowerCase();
    this.draw();
    if (!this.query) return null;
    const { boxes } = this;
    const isFound = (box) => boxes.name(box).toLowerCase().includes(this.query);
    let [count, sum] = [0, 0];
    const add = (list, inside) => {
      for (const box of list) {
        const found = boxes.width[box] > 0 && isFound(box);
        if (found) count++;
        if (found && !inside) sum += boxes.width[box];
        add(this.below[box], inside || found);
      }
    };
    add(this.roots, false);
    const whole = this.roots.reduce((all, box) => all + boxes.width[box], 0);
    return { count, share: whole ? sum / whole : 0 };
  }
}
