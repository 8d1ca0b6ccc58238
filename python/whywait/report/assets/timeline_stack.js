// The call stack of one location over the window of the timeline.

import { fitCanvas } from "./charts.js";
import { css } from "./color.js";
import { make, tip } from "./dom.js";
import { seconds } from "./format.js";
import { GUTTER } from "./timeline_paint.js";

const LEVEL = 18;
const LEVELS = 12;

export class CallStack {
  /** @param {import("./report/timeline.js").Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    /** @type {HTMLCanvasElement} */
    this.canvas = make("canvas", {
      role: "img", "aria-label": "Call stack", onmousemove: (event) => this.hover(event), onmouseleave: () => tip.hide(), ondblclick: (event) => this.zoom(event),
    });
    this.title = make("span", {});
    this.frame = make("div", { class: "calls" }, this.canvas);
    this.node = make("details", { class: "stack-of", ontoggle: () => { timeline.draw(); } },
      make("summary", {}, "Call stack of ", this.title), this.frame);
    this.shown = [];
  }

  get isShown() {
    return this.node.open;
  }

  draw() {
    const { data, picked, window: { from, to } } = this.timeline;
    this.title.textContent = data.calls.location.length ? data.name(picked) : `${data.name(picked)} (this file has no individual calls)`;
    if (!this.isShown || !data.calls.location.length) return;
    const width = this.frame.clientWidth;
    this.shown = data.stackOf(picked, from, to);
    const rows = Math.min(LEVELS, this.shown.reduce((most, { depth }) => Math.max(most, depth + 1), 1));
    const context = fitCanvas(this.canvas, width, rows * LEVEL);
    this.canvas.setAttribute("aria-label", `Call stack of ${data.name(picked)}: ${rows} levels, ${this.shown.length} calls in the window`);
    this.canvas.dataset.calls = String(this.shown.length);
    this.canvas.dataset.levels = String(rows);
    const colors = this.timeline.colors();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const { call, depth } of this.shown) {
      if (depth >= LEVELS) continue;
      const [left, right] = this.edges(call, width);
      if (right - left < 0.3) continue;
      context.globalAlpha = this.timeline.isLit(data.calls.position[call]) ? 1 : 0.25;
      context.fillStyle = this.timeline.tone(call, colors);
      context.fillRect(left, depth * LEVEL, Math.max(0.5, right - left - 0.5), LEVEL - 1);
      context.globalAlpha = 1;
      if (right - left < 34) continue;
      context.save();
      context.beginPath();
      context.rect(left, depth * LEVEL, right - left - 3, LEVEL);
      context.clip();
      context.fillStyle = this.timeline.ink(call, colors);
      context.fillText(data.callName(data.calls.position[call]), left + 4, depth * LEVEL + LEVEL / 2);
      context.restore();
    }
    context.fillStyle = css("--soft");
    context.textAlign = "right";
    for (let depth = 0; depth < rows; depth++) context.fillText(String(depth + 1), GUTTER - 8, depth * LEVEL + LEVEL / 2);
  }

  edges(call, width) {
    const { data, window: { from, to } } = this.timeline;
    const x = (time) => GUTTER + ((time - from) / (to - from)) * (width - GUTTER);
    return [Math.max(GUTTER, x(data.calls.enter[call])), Math.min(width, x(data.calls.leave[call]))];
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const level = Math.floor((event.clientY - box.top) / LEVEL);
    const place = event.clientX - box.left;
    return this.shown.find(({ call, depth }) => {
      const [left, right] = this.edges(call, box.width);
      return depth === level && left <= place && place <= right;
    });
  }

  hover(event) {
    const found = this.at(event);
    if (!found) { tip.hide(); return; }
    const { data } = this.timeline;
    const { enter, leave, position } = data.calls;
    tip.show(event, make("b", {}, data.callName(position[found.call])), make("br"), data.callPath(position[found.call]), make("br"),
      make("small", {}, `${seconds(leave[found.call] - enter[found.call])}, from ${enter[found.call].toFixed(9)} s`));
  }

  // Zooms to one call with some context.
  zoom(event) {
    const found = this.at(event);
    if (!found) return;
    const { data, window: { first, last } } = this.timeline;
    const [begin, end] = [data.calls.enter[found.call], data.calls.leave[found.call]];
    this.timeline.look(begin - 0.05 * (end - begin), end + 0.05 * (end - begin), first, last);
  }
}
