// A window of the timeline, and its control by keyboard and pointer.

import { make, tip } from "./dom.js";
import { percent, seconds } from "./format.js";
import { numberIn } from "./link.js";
import { lockColor, ownedAt } from "./timeline_locks.js";
import { AXIS, GUTTER, LAYERS, TimelinePicture } from "./timeline_paint.js";

export function button(text, title, act) {
  return make("button", { type: "button", title, "aria-label": title, onclick: act }, text);
}

// Checkboxes for the overlays of panes.
export function layerBoxes(panes) {
  const layers = LAYERS.filter(([name]) => panes.some(({ data }) => data.hasLayer(name)));
  return layers.map(([name, text, title]) => {
    const box = make("input", { type: "checkbox", "data-layer": name, checked: true,
      onchange: () => { for (const pane of panes) { pane.layers[name] = box.checked; pane.draw(); } } });
    return make("label", { class: "check", title }, box, text);
  });
}

export class TimelinePane extends TimelinePicture {
  constructor() {
    super();
    this.canvas = make("canvas", {
      tabindex: 0, role: "img", class: "times", onpointerdown: (event) => this.grab(event), onpointermove: (event) => this.move(event),
      onpointerup: (event) => this.drop(event), onpointerleave: () => tip.hide(), onkeydown: (event) => this.key(event),
      ondblclick: (event) => this.zoom(0.25, event),
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.strip = make("canvas", {
      class: "strip", role: "img", "aria-label": "The whole run; drag to select a time window",
      onpointerdown: (event) => this.stripGrab(event), onpointermove: (event) => this.stripMove(event),
      onpointerup: () => { this.stripFrom = null; },
    });
    this.plane = make("div", { class: "plane" }, this.canvas);
  }

  // Keys of a window wherever the focus is.
  get windowActions() {
    return {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.reset(),
      "[": () => this.zoomRows(2), "]": () => this.zoomRows(0.5),
    };
  }

  // Hooks for the enclosing view: the window moved; a row or a place in it was clicked (null: outside all rows); Enter.
  looked() {}

  /** @param {number} _row */
  pick(_row) {}

  /** @param {{ location: number, time: number, slack: number } | null} _place */
  choose(_place) {}

  enter() {}

  // The window -----------------------------------------------------------------------------------------------------

  // The limits of the window in time.
  get reach() {
    return [0, this.data.length];
  }

  look(from, to, first, last) {
    const { count } = this.data;
    const [begin, end] = this.reach;
    const least = Math.max((end - begin) * 1e-9, 1e-9);
    const span = Math.min(end - begin, Math.max(least, to - from)) || 1;
    const rows = Math.min(count, Math.max(1, Math.round(last - first)));
    const left = Math.min(Math.max(begin, from), Math.max(begin, end - span));
    const top = Math.min(Math.max(0, Math.round(first)), count - rows);
    this.window = { from: left, to: left + span, first: top, last: top + rows };
    this.draw();
    this.looked();
  }

  // Parameters of an address: from, to (seconds), places (first-last).
  lookAt(query) {
    const [begin, end] = this.reach;
    const [first, last] = /^(\d+)-(\d+)$/.exec(query.get("places") ?? "")?.slice(1).map(Number) ?? [0, this.data.count - 1];
    this.look(numberIn(query, "from", begin), numberIn(query, "to", end), first, last + 1);
  }

  reset() {
    this.look(...this.reach, 0, this.data.count);
  }

  // Scales the time span by `factor` around the pointer or the middle.
  zoom(factor, event) {
    const { from, to, first, last } = this.window;
    const at = event && this.rows ? this.timeAt(event) : (from + to) / 2;
    const share = (at - from) / (to - from);
    const [begin, end] = this.reach;
    const span = Math.min(end - begin, (to - from) * factor);
    this.look(at - share * span, at + (1 - share) * span, first, last);
  }

  zoomRows(factor, at) {
    const { from, to, first, last } = this.window;
    const middle = at ?? (first + last) / 2;
    const rows = Math.max(1, (last - first) * factor);
    const share = (middle - first) / (last - first);
    const top = middle - share * rows;
    this.look(from, to, factor < 1 ? Math.ceil(top) : Math.floor(top), (factor < 1 ? Math.ceil(top) : Math.floor(top)) + Math.round(rows));
  }

  pan(time, rows) {
    const { from, to, first, last } = this.window;
    const step = time * (to - from);
    this.look(from + step, to + step, first + rows, last + rows);
  }

  wheel(event) {
    event.preventDefault();
    tip.hide();
    const factor = Math.exp(Math.sign(event.deltaY || event.deltaX) * Math.min(0.5, Math.abs(event.deltaY || event.deltaX) / 300));
    if (event.shiftKey) this.zoomRows(factor, this.rowAt(event));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 800, 0);
    else this.zoom(factor, event);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { from, to, first, last } = this.window;
    const [begin, end] = this.reach;
    const rows = Math.max(1, Math.round((last - first) / 8));
    const actions = {
      ArrowLeft: () => this.pan(-0.15, 0), ArrowRight: () => this.pan(0.15, 0),
      ArrowUp: () => this.pan(0, -rows), ArrowDown: () => this.pan(0, rows),
      PageUp: () => this.pan(-0.9, 0), PageDown: () => this.pan(0.9, 0),
      Home: () => this.look(begin, begin + to - from, first, last), End: () => this.look(end - (to - from), end, first, last),
      Enter: () => this.enter(),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  // Pointer --------------------------------------------------------------------------------------------------------

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  timeAt(event) {
    const { from, to } = this.window;
    return from + ((this.point(event).x - GUTTER) / (this.width - GUTTER)) * (to - from);
  }

  rowAt(event) {
    const { first, last } = this.window;
    return first + ((this.point(event).y - AXIS) / (this.height - AXIS)) * (last - first);
  }

  grab(event) {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { ...this.point(event), window: this.window, moved: false };
  }

  move(event) {
    if (!this.held) { this.hover(event); return; }
    const { x, y } = this.point(event);
    const { window: { from, to, first, last } } = this.held;
    if (Math.hypot(x - this.held.x, y - this.held.y) > 3) this.held.moved = true;
    if (!this.held.moved) return;
    tip.hide();
    const time = ((this.held.x - x) / (this.width - GUTTER)) * (to - from);
    const rows = Math.round(((this.held.y - y) / (this.height - AXIS)) * (last - first));
    this.look(from + time, to + time, first + rows, last + rows);
  }

  drop(event) {
    const { held } = this;
    this.held = null;
    if (!held || held.moved) return;
    const row = Math.floor(this.rowAt(event));
    if (this.point(event).y >= AXIS && row >= 0 && row < this.data.count) this.pick(row);
    this.choose(this.placeAt(event));
  }

  placeAt(event) {
    const { x, y } = this.point(event);
    if (x < GUTTER || y < AXIS || x > this.width || y > this.height) return null;
    const location = Math.floor(this.rowAt(event));
    if (location < 0 || location >= this.data.count) return null;
    const { from, to } = this.window;
    return { location, time: this.timeAt(event), slack: (1.5 * (to - from)) / this.width };
  }

  hover(event) {
    const place = this.placeAt(event);
    if (!place) { tip.hide(); return; }
    const { data } = this;
    const { location, time, slack } = place;
    const { from, to, first, last } = this.window;
    const pixel = (to - from) / (this.width - GUTTER);
    const rows = (last - first) / (this.height - AXIS);
    const level = data.level(pixel, rows);
    const shares = Array.from(data.shares(level, time - pixel / 2, pixel, 1, location, location + 1, new Float32Array(data.planes)));
    const bin = Math.floor(time / level.width);
    const call = this.canvas.dataset.shows === "calls" ? data.callAt(location, time) : -1;
    const wait = data.waitAt(location, time, slack);
    const group = level.merged > 1
      ? ` (of ${data.name(Math.floor(location / level.merged) * level.merged)} to ${data.name(Math.min(data.count, (Math.floor(location / level.merged) + 1) * level.merged) - 1)})` : "";
    const rest = 1 - shares.reduce((sum, share) => sum + share, 0);
    const lines = call >= 0 ? [] : [...data.classes.map(([name, text], plane) => [name, text, shares[plane]]), ["nothing", data.nothing, rest]]
      .filter(([, , share]) => share >= 0.005).sort((a, b) => b[2] - a[2]);
    tip.show(event, make("b", {}, data.name(location)), group, ` at ${this.clock(time)}`,
      call >= 0 && make("div", {}, data.callPath(data.calls.position[call]), make("br"),
        make("small", {}, `${seconds(data.calls.leave[call] - data.calls.enter[call])}${data.isManagement(data.calls.position[call]) ? "" : " in this call"}, from ${data.calls.enter[call].toFixed(9)} s`)),
      wait >= 0 && make("div", {}, make("i", { class: "swatch waiting", style: { "--color": "var(--time-waiting)" } }),
        this.waitText(wait)),
      this.layers.locks && ownedAt(data.locks, location, time).map((own) => make("div", {},
        make("i", { class: "swatch", style: { "--color": lockColor(data.locks.lock[own]) } }),
        `owns a lock for ${seconds(data.locks.end[own] - data.locks.begin[own])}: `, data.callName(data.locks.position[own]))),
      lines.length > 0 && make("table", {}, lines.map(([name, text, share]) => make("tr", {},
        make("th", {}, make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name}, transparent)` } }), text),
        make("td", {}, percent(share))))),
      lines.length > 0 && make("small", {}, `of ${this.clock(bin * level.width)} to ${this.clock((bin + 1) * level.width)}`));
  }

  waitText(wait) {
    const { data } = this;
    const { kind, waiting, cause_location: cause } = data.waits;
    const label = data.metric(kind[wait])?.label ?? data.kinds[kind[wait]];
    return `${label}: waits ${seconds(waiting[wait])}${cause[wait] >= 0 ? ` for ${data.name(cause[wait])}` : ""}`;
  }

  // The strip ------------------------------------------------------------------------------------------------------

  stripTime(event) {
    const box = this.strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left - GUTTER) / (box.width - GUTTER))) * this.whole;
  }

  stripGrab(event) {
    this.strip.setPointerCapture(event.pointerId);
    this.stripFrom = this.stripTime(event);
    const { from, to, first, last } = this.window;
    const half = (to - from) / 2;
    const [begin, end] = this.reach;
    if (to - from < end - begin) this.look(this.stripFrom - half, this.stripFrom + half, first, last);
  }

  stripMove(event) {
    if (this.stripFrom === null || this.stripFrom === undefined) return;
    const here = this.stripTime(event);
    if (Math.abs(here - this.stripFrom) < this.whole * 0.004) return;
    this.look(Math.min(here, this.stripFrom), Math.max(here, this.stripFrom), this.window.first, this.window.last);
  }
}
