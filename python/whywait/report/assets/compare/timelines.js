// The timelines of two runs, measured and simulated, one above the other at the same scale. A selection in one is also
// shown in the other, at the same horizontal position.

import { columnBlock, hasBlock } from "../data.js";
import { choice, fill, hiddenHeading, make } from "../dom.js";
import { seconds } from "../format.js";
import { noteAddress, numberIn } from "../link.js";
import { addView } from "../sections.js";
import { TimelineData } from "../timeline_data.js";
import { TimelinePane, button, layerBoxes } from "../timeline_pane.js";
import { TimeMap } from "./time_map.js";

const ALIGNED = [
  ["begin", "Align starts", "Align the starts of both runs"],
  ["call", "Align call", "Align the start of the selected call in both runs; click another call to select it"],
];

class Pane extends TimelinePane {
  /**
   * @param {Timelines} pair
   * @param {number} side
   */
  constructor(pair, side) {
    super();
    this.pair = pair;
    this.side = side;
  }

  get reach() { return this.pair.reach(this.side); }

  get whole() { return this.pair.whole; }

  looked() { this.pair.moved(this.side); }

  choose(place) { this.pair.choose(this.side, place); }

  enter() { this.pair.nextWait(this.side); }
}

export class Timelines {
  /** @param {import("./model.js").Comparison} model */
  constructor(model) {
    this.model = model;
    this.node = make("section", { class: "timeline both", "aria-label": "Timelines" });
    /** @type {Pane[]} */
    this.panes = [];
    // Offset of the second run's window to the first's, seconds.
    this.shift = 0;
    /** What is selected, as it is in each run. @type {any[] | null} */
    this.selected = null;
  }

  // Shows an address: from, to (seconds of the first run), places (first-last), shift.
  async follow(query) {
    if (!this.opening) {
      fill(this.node, make("p", { class: "opening" }, "Opening the timelines…"));
      this.opening = this.open();
    }
    await this.opening;
    const [measured] = this.panes;
    if (query.size || !measured.window) {
      this.align(numberIn(query, "shift", 0), false);
      measured.lookAt(query);
    }
    for (const pane of this.panes) pane.resize();
    this.node.dataset.shown = "";
  }

  async open() {
    const [map, ...datas] = await Promise.all([columnBlock("timeline-map"), ...this.model.runs.map((run) => TimelineData.open(run, run.prefix))]);
    this.map = new TimeMap(map, datas[0].count);
    this.panes = datas.map((data, side) => Object.assign(new Pane(this, side), { data }));
    this.whole = Math.max(...datas.map((data) => data.length));
    this.build();
  }

  build() {
    const [measured] = this.panes;
    this.alignment = choice("What is aligned", ALIGNED, "begin", (key) => {
      this.align(key === "begin" || !this.selected ? 0 : this.selected[1].from - this.selected[0].from);
    });
    this.details = make("div", { class: "picked", role: "status" });
    const shown = new Set(this.panes.flatMap(({ data }) => data.levels[0].present));
    const classes = measured.data.classes.map(([name, text], plane) => shown.has(plane)
      && make("span", {}, make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name})` } }), text));
    fill(this.node, hiddenHeading("Timelines"),
      make("div", { class: "toolbar" },
        button("−", "Zoom out (−)", () => measured.zoom(2)), button("+", "Zoom in (+)", () => measured.zoom(0.5)),
        button("All", "Everything (0)", () => measured.reset()), this.alignment.node,
        this.panes.map(({ data }, side) => data.waits.begin.length > 0
          && button(`Waits ${this.model.names[side]}`, `Next of the longest waits, ${this.model.names[side]} (${"wx"[side]})`, () => this.nextWait(side))),
        layerBoxes(this.panes)),
      this.panes.map((pane, side) => this.run(pane, side)),
      make("div", { class: "classes" }, classes, make("span", {}, make("i", { class: "swatch nothing" }), "Outside the program")),
      this.details);
    this.describe();
    for (const pane of this.panes) new ResizeObserver(() => pane.resize()).observe(pane.plane);
  }

  run(pane, side) {
    pane.said = { where: make("span", {}), left: make("span", { class: "hint", role: "status" }) };
    return [make("p", { class: "of" }, make("b", {}, this.model.names[side]), pane.said.where, pane.said.left), pane.strip, pane.plane];
  }

  // The window -----------------------------------------------------------------------------------------------------

  // The limits of both runs, in times of one of them.
  reach(side) {
    const [first, second] = this.panes.map(({ data }) => data.length);
    const own = side ? this.shift : 0;
    return [Math.min(0, -this.shift) + own, Math.max(first, second - this.shift) + own];
  }

  // One window moved: move the other one with it.
  moved(side) {
    const { from, to, first, last } = this.panes[side].window;
    const by = side ? -this.shift : this.shift;
    const other = this.panes[1 - side];
    other.window = { from: from + by, to: to + by, first, last };
    other.draw();
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.note(), 150);
  }

  // `still`: the run whose window stays.
  align(shift, redraw = true, still = 0) {
    this.shift = shift;
    this.alignment.show(shift ? "call" : "begin");
    if (!redraw) return;
    const { from, to, first, last } = this.panes[still].window;
    this.panes[still].look(from, to, first, last);
  }

  note() {
    const { from, to, first, last } = this.panes[0].window;
    /** @type {Record<string, string>} */
    const query = { from: from.toFixed(9), to: to.toFixed(9) };
    if (this.shift) query.shift = this.shift.toFixed(9);
    if (last - first < this.panes[0].data.count) query.places = `${first}-${last - 1}`;
    noteAddress("timelines", query);
  }

  get actions() {
    if (!this.panes.length) return {};
    return { ...this.panes[0].windowActions, w: () => this.nextWait(0), x: () => this.nextWait(1) };
  }

  repaint() {
    for (const pane of this.panes) pane.draw();
  }

  // What is selected -----------------------------------------------------------------------------------------------

  // Selects the call at a place of one run, or the wait if there are no individual calls, or the time; and the same in
  // the other run.
  choose(side, place) {
    if (!place) {
      this.selected = null;
    } else {
      const { data } = this.panes[side];
      const { location, time, slack } = place;
      const call = data.callAt(location, time);
      const wait = call < 0 ? data.waitAt(location, time, slack) : -1;
      const { calls: { enter, leave, position }, waits } = data;
      const own = call >= 0 ? { location, call, position: position[call], from: enter[call], to: leave[call] }
        : wait >= 0 ? { location, call, position: waits.position[wait], from: waits.begin[wait], to: waits.end[wait] }
          : { location, call, position: -1, from: time, to: time };
      const other = this.counterpart(side, own);
      this.selected = side ? [other, own] : [own, other];
      this.align(this.selected[1].from - this.selected[0].from, true, side);
    }
    this.panes.forEach((pane, i) => {
      pane.marked = this.selected?.[i] ?? null;
      pane.selected = pane.marked ? this.waitOf(pane.data, pane.marked) : -1;
      pane.draw();
    });
    this.describe();
  }

  // The counterpart in the other run: the call with the same number if the location has as many calls, or by mapped
  // time.
  counterpart(side, { location, call, position, from, to }) {
    const [here, there] = [this.panes[side].data, this.panes[1 - side].data];
    const count = ({ rowOf }) => rowOf[location + 1] - rowOf[location];
    if (call >= 0 && count(here) === count(there)) {
      const twin = there.rowOf[location] + call - here.rowOf[location];
      return { location, call: twin, position: there.calls.position[twin], from: there.calls.enter[twin], to: there.calls.leave[twin] };
    }
    return { location, call: -1, position: this.position(side, position), from: this.map.other(side, location, from), to: this.map.other(side, location, to) };
  }

  // The call path of one run in the other; -1 if missing.
  position(side, position) {
    const { runs, calls } = this.model;
    if (position < 0) return -1;
    const [here, other] = [this.panes[side].data, this.panes[1 - side].data];
    const [there] = this.model.callsOf[1 - side][calls.nodes[side][position % here.callPaths]];
    return there === undefined ? -1 : there - runs[1 - side].shift + (here.isManagement(position) ? other.callPaths : 0);
  }

  // The longest known wait in the selection, or -1.
  waitOf(data, { location, position, from, to }) {
    const { begin, end, location: where, position: what } = data.waits;
    const room = 1e-12 + 1e-9 * (to - from);
    return begin.findIndex((start, i) => where[i] === location && what[i] === position && start >= from - room && end[i] <= to + room);
  }

  describe() {
    if (!this.selected) {
      fill(this.details, make("p", { class: "hint" },
        "Click a call in one run to see the same call in the other run, above or below. Drag to move, scroll to zoom, Shift and "
          + "scroll to zoom ranks. Keys: ← → ↑ ↓  + −  [ ]  0  w x"));
      return;
    }
    const [first, second] = this.selected;
    const shown = this.selected.findIndex(({ position }) => position >= 0);
    const name = shown < 0 ? "A moment" : this.panes[shown].data.callPath(this.selected[shown].position);
    const row = (pane, side) => {
      const { from, to } = this.selected[side];
      const wait = pane.selected;
      const gone = side === 1 && to === from && first.to > first.from;
      return make("tr", {}, make("th", {}, this.model.names[side]), make("td", {}, gone ? "takes no time" : seconds(to - from)),
        make("td", {}, `from ${from.toFixed(9)} s`), make("td", { class: "wait" }, wait < 0 ? "no known wait" : pane.waitText(wait)));
    };
    const change = (second.to - second.from) - (first.to - first.from);
    const word = Math.abs(change) < 5e-10 ? "as long" : `${seconds(Math.abs(change))} ${change < 0 ? "shorter" : "longer"}`;
    const moved = second.from - first.from;
    const when = Math.abs(moved) < 5e-10 ? "at the same time" : `${seconds(Math.abs(moved))} ${moved < 0 ? "earlier" : "later"}`;
    fill(this.details,
      make("p", {}, make("b", {}, this.panes[0].data.name(first.location)), ": ", make("code", {}, name),
        `; ${this.model.names[1]} it is ${word}, and begins ${when}.`),
      make("table", {}, this.panes.map(row)));
  }

  // Goes to the next of the longest waits of a run.
  nextWait(side) {
    const pane = this.panes[side];
    const { waits, count } = pane.data;
    if (!waits.begin.length) return;
    const wait = pane.selected >= 0 ? (pane.selected + 1) % waits.begin.length : 0;
    const [location, begin, length] = [waits.location[wait], waits.begin[wait], waits.end[wait] - waits.begin[wait]];
    const around = Math.min(count, 16);
    const first = Math.max(0, Math.min(count - around, location - Math.floor(around / 2)));
    pane.look(begin - length, begin + 2 * length, first, first + around);
    this.choose(side, { location, time: begin + length / 2, slack: 0 });
    pane.selected = wait;
  }
}

addView({
  name: "timelines", title: "Timelines", key: "l", order: 30, exists: () => hasBlock("timeline-map"), View: Timelines,
  keys: [
    ["+ −  0  [ ]", "timelines: zoom in, zoom out, whole run; more ranks, fewer ranks"],
    ["w  x", "timelines: next of the longest waits of A, of B"],
  ],
});
