// The timeline view: tools, address, selection, and search.

import { hasBlock } from "../data.js";
import { choice, fill, hiddenHeading, make } from "../dom.js";
import { plural } from "../format.js";
import { exploreLink, noteAddress, numberIn } from "../link.js";
import { selection } from "../model.js";
import { addView } from "../sections.js";
import { CallsOnDemand } from "../timeline_calls.js";
import { TimelineData } from "../timeline_data.js";
import { lockColor } from "../timeline_locks.js";
import { functionColor } from "../timeline_paint.js";
import { TimelinePane, button, layerBoxes } from "../timeline_pane.js";
import { CounterLanes } from "../timeline_counters.js";
import { CallStack } from "../timeline_stack.js";
import { WindowStatistics } from "../window_statistics.js";

const COLORINGS = [["class", "By class", "Color calls by kind"], ["function", "By function", "Color calls by function, where individual calls are shown"]];
const NAMED = 12;

export class Timeline extends TimelinePane {
  constructor(model) {
    super();
    this.model = model;
    /** @type {Promise<TimelineData> | null} */
    this.opening = null;
    /** @type {Set<number> | null} */
    this.found = null;
    /** @type {number[] | null} */
    this.ranked = null;
    this.node = make("section", { class: "timeline", "aria-label": "Timeline" });
  }

  // Shows an address: from, to (seconds), places (first-last, numbers of rows), wait (a time in it; of a rank and thread).
  async follow(query) {
    if (!hasBlock("timeline")) {
      fill(this.node, make("p", { class: "opening" },
        "This report has no timeline: its result has no events. To get one, analyze the trace: ", make("code", {}, `whywait analyze ${this.model.run.path} --html`)));
      return;
    }
    if (!this.data) {
      fill(this.node, make("p", { class: "opening" }, "Opening the timeline…"));
      this.opening ??= TimelineData.open(this.model);
      this.data = await this.opening;
      this.build();
    }
    if (query.size || !this.window) this.lookAt(query.has("from") || this.window ? query : this.start(query));
    this.resize();
    if (query.has("wait")) {
      const row = this.data.rowAt(numberIn(query, "rank", 0), numberIn(query, "thread", 0));
      this.select(this.data.waitAt(row, numberIn(query, "wait", 0), 1e-9));
    }
    this.node.dataset.shown = "";
  }

  // Start at the focus of the overview: start-up and shutdown may be most of the run, with nothing to see.
  start(query) {
    const { window } = this.model.story.focus;
    if (!window) return query;
    const whole = new URLSearchParams(query);
    whole.set("from", window[0]);
    whole.set("to", window[1]);
    return whole;
  }

  build() {
    const { data } = this;
    this.demand = new CallsOnDemand(data, () => this.draw());
    const where = make("span", { class: "crumbs" });
    this.details = make("div", { class: "picked", role: "status" });
    const left = make("span", { class: "hint", role: "status" });
    this.said = { where, left };
    const coloring = choice("Color of calls", COLORINGS, this.coloring, (key) => { this.coloring = key; this.legend(); this.draw(); });
    this.hits = make("span", { class: "hint", role: "status" });
    this.searchBox = make("input", { type: "search", placeholder: "Find a function", "aria-label": "Find a function", spellcheck: "false",
      oninput: () => this.search(), onkeydown: (event) => { if (event.key === "Enter") this.nextFound(); } });
    this.classes = make("div", { class: "classes" });
    this.stack = new CallStack(this);
    this.lanes = new CounterLanes(this);
    fill(this.node, hiddenHeading("Timeline"),
      make("div", { class: "toolbar" },
        button("−", "Zoom out (−)", () => this.zoom(2)), button("+", "Zoom in (+)", () => this.zoom(0.5)),
        button("All", "The whole run (0)", () => this.reset()), button("Next wait", "Show the next of the longest waits (w)", () => this.next()),
        layerBoxes([this]), (this.demand.possible || data.calls.location.length > 0) && coloring.node, this.searchBox, this.hits, where),
      this.strip,
      this.plane,
      this.classes, this.details, this.lanes.node, this.stack.node, (this.statistics = new WindowStatistics(data)).node);
    this.legend();
    this.describe();
    new ResizeObserver(() => this.resize()).observe(this.plane);
  }

  // The legend: classes, or the functions with the most time where individual calls are shown.
  legend() {
    const { data } = this;
    const present = new Set(data.levels[0].present);
    const ofClass = ([name, text], plane) => present.has(plane)
      && make("span", {}, make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name})` } }), text);
    const ofFunction = (number) =>
      make("span", {}, make("i", { class: "swatch", style: { "--color": functionColor(number) } }), this.model.regions[number].short);
    const functions = this.coloring === "function" && this.canvas.dataset.shows === "calls" ? this.largestFunctions() : null;
    const more = functions ? functions.length - NAMED : 0;
    const names = functions ? [functions.slice(0, NAMED).map(ofFunction), more > 0 && make("span", {}, `and ${plural(more, "other")}`),
      ofClass(data.classes.at(-1), data.planes - 1)] : data.classes.map(ofClass);
    fill(this.classes, names, make("span", {}, make("i", { class: "swatch nothing" }), data.nothing),
      data.hasLayer("locks") && make("span", {}, make("i", { class: "swatch", style: { "--color": lockColor(data.locks.lock[0]) } }), "Bar: owns a lock"), this.said.left);
  }

  // Functions by their own time in the run, longest first.
  largestFunctions() {
    const { model, data } = this;
    const { own } = model.byCall(selection(model.metricNumber.get("time")));
    const times = new Map();
    for (let position = 0; position < model.positions; position++) {
      const number = data.functionOf(position);
      times.set(number, (times.get(number) ?? 0) + own[position + model.shift]);
    }
    return [...times].sort((a, b) => b[1] - a[1]).map(([number]) => number);
  }

  // Functions ------------------------------------------------------------------------------------------------------

  // Highlights the calls of functions whose names contain the text, with what they call.
  search() {
    const text = this.searchBox.value.trim().toLowerCase();
    const numbers = this.model.regions.flatMap((region, number) => (region.name.toLowerCase().includes(text) ? [number] : []));
    this.found = text ? new Set(numbers) : null;
    this.lit = text ? this.data.within(this.found) : null;
    const { calls, totals } = this.data;
    const count = text ? calls.position.reduce((sum, position) => sum + (this.found.has(this.data.functionOf(position)) ? 1 : 0), 0) : 0;
    this.hits.textContent = !text ? "" : count ? `${count.toLocaleString("en-US")} calls; Enter: the next`
      : !calls.location.length && totals.calls && numbers.length ? "this file has no individual calls" : "no such call";
    this.draw();
  }

  // Centers the next match in the window or after it, large enough to be readable.
  nextFound() {
    if (!this.found) return;
    const { from, to } = this.window;
    const isHere = this.reached >= from && this.reached <= to;
    const call = this.data.nextCall(this.found, isHere ? this.reached : from);
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

  // Selects the location whose call stack is shown.
  pick(location) {
    this.picked = location;
    this.draw();
  }

  // The window -----------------------------------------------------------------------------------------------------

  looked() {
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.note(), 150);
  }

  note() {
    const { from, to, first, last } = this.window;
    const query = { from: from.toFixed(9), to: to.toFixed(9) };
    if (last - first < this.data.count) query.places = `${first}-${last - 1}`;
    noteAddress("timeline", query);
  }

  repaint() {
    this.draw();
  }

  get actions() {
    if (!this.data) return {};
    return { ...this.windowActions, w: () => this.next(), Escape: () => this.select(-1), "/": () => this.searchBox.focus() };
  }

  // Waits ----------------------------------------------------------------------------------------------------------

  choose(place) {
    this.select(place ? this.data.waitAt(place.location, place.time, place.slack) : -1);
  }

  enter() {
    this.jumpToCause();
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
        "Drag to move, scroll to zoom, Shift and scroll to zoom ranks; click a wait to see its cause. Keys: ← → ↑ ↓  + −  [ ]  0  w  /"));
      return;
    }
    const { waits } = data;
    const place = (location) => Math.floor(data.indexes[location] / this.model.resolution.merged);
    const row = (location) => this.model.systemOfPlace[place(location)];
    const call = (position) => (position < 0 ? undefined : this.model.callpaths.id[position]);
    const cause = waits.cause_location[wait];
    fill(this.details,
      make("p", {}, make("b", {}, `${data.name(waits.location[wait])}: ${this.waitText(wait)}`), " in ",
        make("code", {}, data.callName(waits.position[wait])), `, from ${waits.begin[wait].toFixed(9)} s to ${waits.end[wait].toFixed(9)} s. `,
        cause >= 0 && waits.cause_position[wait] >= 0 && [`It ended with `, make("code", {}, data.callPath(waits.cause_position[wait])),
          Number.isNaN(waits.cause_time[wait]) ? "" : ` on ${data.name(cause)}, from ${waits.cause_time[wait].toFixed(9)} s.`]),
      make("p", { class: "jumps" },
        cause >= 0 && make("button", { type: "button", onclick: () => this.jumpToCause() }, "Go to the cause"),
        make("a", { href: exploreLink(data.kinds[waits.kind[wait]], call(waits.position[wait]), row(waits.location[wait])) }, "Its row in the explorer"),
        cause >= 0 && waits.cause_position[wait] >= 0
          && make("a", { href: exploreLink("time", call(waits.cause_position[wait]), row(cause)) }, "The cause in the explorer")));
  }

  // Shows a wait together with its cause.
  show(wait) {
    const { waits, count } = this.data;
    const cause = waits.cause_location[wait];
    const begin = Math.min(waits.begin[wait], Number.isNaN(waits.cause_time[wait]) ? Infinity : waits.cause_time[wait]);
    const end = waits.end[wait];
    const room = (end - begin) * 0.6;
    const places = [waits.location[wait], ...(cause >= 0 ? [cause] : [])];
    // Include neighbors for comparison, as long as rows stay distinguishable.
    const least = Math.min(...places);
    const most = Math.max(...places);
    const around = most - least < 32 ? Math.min(count, 32) : most - least + 1;
    const first = Math.max(0, Math.min(count - around, Math.floor((least + most + 1 - around) / 2)));
    this.look(begin - room, end + room, first, first + around);
    this.select(wait);
  }

  // Shows the next of the longest waits: first those in the focus.
  next() {
    const { begin, end } = this.data.waits;
    if (!begin.length) return;
    if (!this.ranked) {
      const [from, to] = this.model.story.focus.window ?? [0, Infinity];
      const all = Array.from(begin, (_, i) => i);
      const isInside = (i) => begin[i] < to && end[i] > from;
      this.ranked = [...all.filter(isInside), ...all.filter((i) => !isInside(i))];
    }
    this.show(this.ranked[(this.ranked.indexOf(this.selected) + 1) % this.ranked.length]);
  }

  // Centers the cause and selects its row; if it waits there itself, also that wait.
  jumpToCause() {
    const { waits } = this.data;
    const wait = this.selected;
    if (wait < 0 || waits.cause_location[wait] < 0) return;
    const cause = waits.cause_location[wait];
    const time = Number.isNaN(waits.cause_time[wait]) ? waits.end[wait] : waits.cause_time[wait];
    const { from, to, first, last } = this.window;
    const span = to - from;
    const rows = last - first;
    const inside = cause >= first && cause < last ? first : Math.max(0, cause - Math.floor(rows / 2));
    let before = -1;
    for (let i = 0; i < waits.begin.length; i++) {
      const ends = waits.end[i];
      if (waits.location[i] === cause && ends <= time && ends > time - span
        && (before < 0 || ends > waits.end[before])) before = i;
    }
    this.look(time - span / 2, time + span / 2, inside, inside + rows);
    this.pick(cause);
    if (before >= 0) this.select(before);
  }
}

addView({
  name: "timeline", title: "Timeline", key: "l", order: 40, View: Timeline,
  keys: [
    ["+ −  0", "timeline: zoom in, zoom out, whole run"],
    ["[ ]", "timeline: more ranks, fewer ranks"],
    ["w", "timeline: next of the longest waits; Enter: its cause, Escape: none"],
    ["/", "timeline: find a function; Enter: its next call"],
  ],
});
