// The view of the picture over time: what is shown, what keys, the pointer and the address do with it.

import { choice, fill, make, tip } from "./dom.js";
import { percent, seconds } from "./format.js";
import { address, exploreLink } from "./link.js";
import { TimelineData } from "./timeline_data.js";
import { AXIS, GUTTER, TimelinePicture, functionColor } from "./timeline_paint.js";
import { CallStack } from "./timeline_stack.js";
import { WindowStatistics } from "./window_statistics.js";

const LAYERS = [
  ["waits", "Waits", "Mark single waits"], ["path", "Critical path", "What determines how long the run takes"],
  ["messages", "Messages", "Arrows of messages and one-sided transfers, the most costly first"],
  ["causes", "Causes", "Arrows from causes to the ends of waits"],
];

const COLORINGS = [["class", "By class", "Colors say what kind of call it is"], ["function", "By function", "Every function has a color; where single calls are shown"]];
const NAMED = 12;

export class Timeline extends TimelinePicture {
  constructor(model) {
    super();
    this.model = model;
    /** @type {Promise<TimelineData> | null} */
    this.opening = null;
    this.node = make("section", { class: "timeline", "aria-label": "Timeline" });
  }

  get exists() {
    return document.getElementById("data-timeline") !== null;
  }

  // Show what an address asks for: from, to (seconds), places (first-last, indexes of locations), wait (a begin).
  async follow(query) {
    if (!this.exists) {
      fill(this.node, make("p", { class: "opening" },
        "This report has no timeline, which is made from the events: the result that it was made from holds none, or was "
          + "found by several processes under MPI. Analyze the trace again, by one process (", make("code", {}, `whywait analyze ${this.model.run.path} --html`), ")."));
      return;
    }
    if (!this.data) {
      fill(this.node, make("p", { class: "opening" }, "Opening the timeline…"));
      this.opening ??= TimelineData.open(this.model);
      this.data = await this.opening;
      this.build();
    }
    const number = (name, otherwise) => {
      const value = Number.parseFloat(query.get(name));
      return Number.isFinite(value) ? value : otherwise;
    };
    const [first, last] = /^(\d+)-(\d+)$/.exec(query.get("places") ?? "")?.slice(1).map(Number) ?? [0, this.data.count - 1];
    if (query.size || !this.window) {
      this.look(number("from", 0), number("to", this.data.length), first, last + 1);
    }
    this.resize();
    if (query.has("wait") && query.has("at")) {
      const time = number("wait", 0);
      const location = number("at", 0);
      this.select(this.data.waitAt(location, time, 1e-9));
    }
    this.node.dataset.shown = "";
  }

  build() {
    const { data } = this;
    const button = (text, title, act) => make("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.canvas = make("canvas", {
      tabindex: 0, role: "img", class: "times", onpointerdown: (event) => this.grab(event), onpointermove: (event) => this.move(event),
      onpointerup: (event) => this.drop(event), onpointerleave: () => tip.hide(), onkeydown: (event) => this.key(event),
      ondblclick: (event) => this.zoom(0.25, event),
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.strip = make("canvas", {
      class: "strip", role: "img", "aria-label": "The whole run; drag over it to choose a time",
      onpointerdown: (event) => this.stripGrab(event), onpointermove: (event) => this.stripMove(event),
      onpointerup: () => { this.stripFrom = null; },
    });
    const where = make("span", { class: "crumbs" });
    this.details = make("div", { class: "picked", role: "status" });
    const left = make("span", { class: "hint", role: "status" });
    this.said = { where, left };
    const layers = LAYERS.filter(([name]) => name !== "path" || data.path.location.length).map(([name, text, title]) => {
      const box = make("input", { type: "checkbox", "data-layer": name, checked: true,
        onchange: () => { this.layers[name] = box.checked; this.draw(); } });
      return make("label", { class: "check", title }, box, text);
    });
    const coloring = choice("Color of calls", COLORINGS, this.coloring, (key) => { this.coloring = key; this.legend(); this.draw(); });
    this.hits = make("span", { class: "hint", role: "status" });
    this.searchBox = make("input", { type: "search", placeholder: "Find a function", "aria-label": "Find a function", spellcheck: "false",
      oninput: () => this.search(), onkeydown: (event) => { if (event.key === "Enter") this.nextFound(); } });
    this.classes = make("div", { class: "classes" });
    this.stack = new CallStack(this);
    fill(this.node,
      make("div", { class: "toolbar" },
        button("−", "Zoom out (−)", () => this.zoom(2)), button("+", "Zoom in (+)", () => this.zoom(0.5)),
        button("All", "Everything (0)", () => this.reset()), button("Longest waits", "To the next one of the longest waits (w)", () => this.next()),
        layers, data.calls.location.length > 0 && coloring.node, this.searchBox, this.hits, where),
      this.strip,
      make("div", { class: "plane" }, this.canvas),
      this.classes, this.stack.node, this.details, (this.statistics = new WindowStatistics(data)).node);
    this.legend();
    this.describe();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
  }

  // What colors mean: classes, or the functions with most of the time.
  legend() {
    const { data } = this;
    const present = new Set(data.levels[0].present);
    const names = this.coloring === "function"
      ? this.largestFunctions().map((number) => make("span", {}, make("i", { class: "swatch", style: { "--color": functionColor(number) } }), this.model.regions[number].short))
      : data.classes.map(([name, text], plane) => present.has(plane)
        && make("span", {}, make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name})` } }), text));
    fill(this.classes, names, make("span", {}, make("i", { class: "swatch nothing" }), "Outside of the program"), this.said.left);
  }

  largestFunctions() {
    const { position, enter, leave } = this.data.calls;
    const times = new Map();
    for (let i = 0; i < enter.length; i++) {
      const number = this.data.functionOf(position[i]);
      times.set(number, (times.get(number) ?? 0) + leave[i] - enter[i]);
    }
    return [...times].sort((a, b) => b[1] - a[1]).slice(0, NAMED).map(([number]) => number);
  }

  // Functions ------------------------------------------------------------------------------------------------------

  // Mark the calls of functions whose names have the text in them; others pale.
  search() {
    const text = this.searchBox.value.trim().toLowerCase();
    const numbers = this.model.regions.flatMap((region, number) => (region.name.toLowerCase().includes(text) ? [number] : []));
    this.found = text ? new Set(numbers) : null;
    const { calls, totals } = this.data;
    const count = text ? calls.position.reduce((sum, position) => sum + (this.found.has(this.data.functionOf(position)) ? 1 : 0), 0) : 0;
    this.hits.textContent = !text ? "" : count ? `${count.toLocaleString("en-US")} calls; Enter: the next`
      : !calls.location.length && totals.calls && numbers.length ? "this file has no individual calls" : "no such call";
    this.draw();
  }

  // Bring the next call that was found into the middle, as large as can be read.
  nextFound() {
    if (!this.found) return;
    const call = this.data.nextCall(this.found, this.reached ?? -Infinity);
    if (call < 0) return;
    const { enter, leave, location } = this.data.calls;
    this.reached = enter[call];
    const room = 2 * Math.max(leave[call] - enter[call], this.data.length * 1e-6);
    const { first, last } = this.window;
    const rows = last - first;
    const top = location[call] >= first && location[call] < last ? first : location[call] - Math.floor(rows / 2);
    this.pick(location[call]);
    this.look(enter[call] - room, leave[call] + room, top, top + rows);
  }

  // Choose the location whose calls are shown one below the other.
  pick(location) {
    this.picked = location;
    this.draw();
  }

  // The window -----------------------------------------------------------------------------------------------------

  look(from, to, first, last) {
    const { length, count } = this.data;
    const least = Math.max(length * 1e-9, 1e-9);
    const span = Math.min(length, Math.max(least, to - from)) || 1;
    const rows = Math.min(count, Math.max(1, Math.round(last - first)));
    const begin = Math.min(Math.max(0, from), Math.max(0, length - span));
    const top = Math.min(Math.max(0, Math.round(first)), count - rows);
    this.window = { from: begin, to: begin + span, first: top, last: top + rows };
    this.draw();
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.note(), 150);
  }

  // Put the window into the address, without a step in the history for each.
  note() {
    if (document.body.dataset.view !== "timeline") return;
    const { from, to, first, last } = this.window;
    const query = { from: from.toFixed(9), to: to.toFixed(9) };
    if (last - first < this.data.count) query.places = `${first}-${last - 1}`;
    history.replaceState(null, "", address("timeline", query));
  }

  reset() {
    this.look(0, this.data.length, 0, this.data.count);
  }

  // `factor` of the time, about the pointer or the middle.
  zoom(factor, event) {
    const { from, to, first, last } = this.window;
    const at = event && this.rows ? this.timeAt(event) : (from + to) / 2;
    const share = (at - from) / (to - from);
    const span = Math.min(this.data.length, (to - from) * factor);
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
    const rows = Math.max(1, Math.round((this.window.last - this.window.first) / 8));
    const actions = {
      ArrowLeft: () => this.pan(-0.15, 0), ArrowRight: () => this.pan(0.15, 0),
      ArrowUp: () => this.pan(0, -rows), ArrowDown: () => this.pan(0, rows),
      PageUp: () => this.pan(-0.9, 0), PageDown: () => this.pan(0.9, 0),
      Home: () => this.look(0, this.window.to - this.window.from, this.window.first, this.window.last),
      End: () => this.look(this.data.length, Infinity, this.window.first, this.window.last),
      Enter: () => this.jumpToCause(),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  // Keys that work wherever the focus is.
  get actions() {
    return {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.reset(),
      "[": () => this.zoomRows(2), "]": () => this.zoomRows(0.5), w: () => this.next(),
      "/": () => this.searchBox.focus(),
    };
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
    const place = this.placeAt(event);
    this.select(place ? this.data.waitAt(place.location, place.time, place.slack) : -1);
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
    const lines = call >= 0 ? [] : [...data.classes.map(([name, text], plane) => [name, text, shares[plane]]), ["nothing", "Outside of the program", rest]]
      .filter(([, , share]) => share >= 0.005).sort((a, b) => b[2] - a[2]);
    tip.show(event, make("b", {}, data.name(location)), group, ` at ${this.clock(time)}`,
      call >= 0 && make("div", {}, data.callPath(data.calls.position[call]), make("br"),
        make("small", {}, `${seconds(data.calls.leave[call] - data.calls.enter[call])} in this call, from ${data.calls.enter[call].toFixed(9)} s`)),
      wait >= 0 && make("div", {}, make("i", { class: "swatch waiting", style: { "--color": "var(--time-waiting)" } }),
        this.waitText(wait)),
      lines.length > 0 && make("table", {}, lines.map(([name, text, share]) => make("tr", {},
        make("th", {}, make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name}, transparent)` } }), text),
        make("td", {}, percent(share))))),
      lines.length > 0 && make("small", {}, `of ${this.clock(bin * level.width)} to ${this.clock((bin + 1) * level.width)}`));
  }

  // Waits ----------------------------------------------------------------------------------------------------------

  waitText(wait) {
    const { data } = this;
    const { kind, waiting, cause_location: cause } = data.waits;
    const label = data.metric(kind[wait])?.label ?? data.kinds[kind[wait]];
    return `${label}: waits ${seconds(waiting[wait])}${cause[wait] >= 0 ? ` for ${data.name(cause[wait])}` : ""}`;
  }

  select(wait) {
    this.selected = wait;
    this.describe();
    this.draw();
  }

  describe() {
    const { data, selected: wait } = this;
    if (wait < 0) {
      fill(this.details, make("p", { class: "hint" },
        "Drag to move, wheel to zoom, Shift and wheel for ranks; click on a wait for its cause. Keys: ← → ↑ ↓  + −  [ ]  0  w"));
      return;
    }
    const { waits } = data;
    const place = (location) => Math.floor(location / this.model.resolution.merged);
    const row = (location) => this.model.systemOfPlace[place(location)];
    const call = (position) => (position < 0 ? undefined : this.model.callpaths.id[position]);
    const cause = waits.cause_location[wait];
    fill(this.details,
      make("p", {}, make("b", {}, `${data.name(waits.location[wait])}: ${this.waitText(wait)}`), " in ",
        make("code", {}, data.callName(waits.position[wait])), `, from ${waits.begin[wait].toFixed(9)} s to ${(waits.begin[wait] + waits.waiting[wait]).toFixed(9)} s. `,
        cause >= 0 && waits.cause_position[wait] >= 0 && [`It ended with `, make("code", {}, data.callPath(waits.cause_position[wait])),
          Number.isNaN(waits.cause_time[wait]) ? "" : ` on ${data.name(cause)}, from ${waits.cause_time[wait].toFixed(9)} s.`]),
      make("p", { class: "jumps" },
        cause >= 0 && make("button", { type: "button", onclick: () => this.jumpToCause() }, "Go to the cause"),
        make("a", { href: exploreLink(data.kinds[waits.kind[wait]], call(waits.position[wait]), row(waits.location[wait])) }, "Its row in the explorer"),
        cause >= 0 && waits.cause_position[wait] >= 0
          && make("a", { href: exploreLink("time", call(waits.cause_position[wait]), row(cause)) }, "The cause in the explorer")));
  }

  // Bring a wait into the picture, with its cause.
  show(wait) {
    const { waits, count } = this.data;
    const cause = waits.cause_location[wait];
    const begin = Math.min(waits.begin[wait], Number.isNaN(waits.cause_time[wait]) ? Infinity : waits.cause_time[wait]);
    const end = waits.begin[wait] + waits.waiting[wait];
    const room = Math.max(end - begin, waits.waiting[wait]) * 0.6;
    const places = [waits.location[wait], ...(cause >= 0 ? [cause] : [])];
    // Neighbors help to see what is usual, as long as rows can be told apart.
    const least = Math.min(...places);
    const most = Math.max(...places);
    const around = most - least < 32 ? Math.min(count, 32) : most - least + 1;
    const first = Math.max(0, Math.min(count - around, Math.floor((least + most + 1 - around) / 2)));
    this.look(begin - room, end + room, first, first + around);
    this.select(wait);
  }

  next() {
    if (this.data.waits.begin.length) this.show((this.selected + 1) % this.data.waits.begin.length);
  }

  // The cause in the middle; if it waits there itself, that wait is next.
  jumpToCause() {
    const { waits } = this.data;
    const wait = this.selected;
    if (wait < 0 || waits.cause_location[wait] < 0) return;
    const cause = waits.cause_location[wait];
    const time = Number.isNaN(waits.cause_time[wait]) ? waits.begin[wait] + waits.waiting[wait] : waits.cause_time[wait];
    const { from, to, first, last } = this.window;
    const span = to - from;
    const rows = last - first;
    const inside = cause >= first && cause < last ? first : Math.max(0, cause - Math.floor(rows / 2));
    let before = -1;
    for (let i = 0; i < waits.begin.length; i++) {
      const ends = waits.begin[i] + waits.waiting[i];
      if (waits.location[i] === cause && ends <= time && ends > time - span
        && (before < 0 || ends > waits.begin[before] + waits.waiting[before])) before = i;
    }
    this.look(time - span / 2, time + span / 2, inside, inside + rows);
    if (before >= 0) this.select(before);
  }

  // The strip ------------------------------------------------------------------------------------------------------

  stripTime(event) {
    const box = this.strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left - GUTTER) / (box.width - GUTTER))) * this.data.length;
  }

  stripGrab(event) {
    this.strip.setPointerCapture(event.pointerId);
    this.stripFrom = this.stripTime(event);
    const { from, to, first, last } = this.window;
    const half = (to - from) / 2;
    if (to - from < this.data.length) this.look(this.stripFrom - half, this.stripFrom + half, first, last);
  }

  stripMove(event) {
    if (this.stripFrom === null || this.stripFrom === undefined) return;
    const here = this.stripTime(event);
    if (Math.abs(here - this.stripFrom) < this.data.length * 0.004) return;
    this.look(Math.min(here, this.stripFrom), Math.max(here, this.stripFrom), this.window.first, this.window.last);
  }
}
