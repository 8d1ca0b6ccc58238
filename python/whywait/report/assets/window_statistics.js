// Statistics of the timeline's window: time by class, by function if individual calls are known, and the samples in it.

import { pale } from "./color.js";
import { fill, make } from "./dom.js";
import { percent, plural, seconds } from "./format.js";
import { Icicle } from "./icicle.js";
import { exportButtons } from "./table_export.js";

const FUNCTIONS = 12;
// Bins in the window, if the shares of classes come from bins.
const BINS = 200;
// Shares of bins are rounded.
const ROUNDING = 0.002;
// Standard deviations of the interval at 95%.
const LIKELY = 1.96;

export class WindowStatistics {
  constructor(data) {
    this.data = data;
    this.body = make("div", { class: "tables" });
    this.icicle = new Icicle("Samples of this window: functions below their callers");
    this.node = make("details", { class: "statistics", ontoggle: () => this.fill() }, make("summary", {}, "Statistics of this window"), this.body);
    this.rows = [];
  }

  // Sets the window; nothing is computed while hidden.
  show(window) {
    this.window = window;
    this.fill();
  }

  fill() {
    if (!this.node.open || !this.window) return;
    const { from, to, first, last } = this.window;
    const { data } = this;
    const whole = (to - from) * (last - first);
    const times = this.exclusive();
    const isExact = data.calls.location.length > 0 && data.hasAllWaits(this.window);
    const level = data.level((to - from) / BINS, last - first);
    const shares = isExact ? this.classTimes(times).map((time) => time / whole)
      : data.shares(level, from, to - from, 1, first, last, new Float32Array(data.planes));
    const classes = data.classes.map(([name, text], plane) => ({ name, text, share: shares[plane] })).filter(({ share }) => share > 1e-12);
    // All shares add up to one.
    const rest = 1 - classes.reduce((sum, { share }) => sum + share, 0);
    if (rest > ROUNDING) classes.push({ name: "nothing", text: data.nothing, share: rest });
    const functions = this.functions(times);
    this.rows = [["what", "share", "seconds"], ...classes.map(({ text, share }) => [text, share, share * whole]),
      ...functions.map(({ name, time }) => [name, time / whole, time])];
    const row = (head, share) => make("tr", {}, make("th", {}, head), make("td", {}, percent(share)), make("td", {}, seconds(share * whole)));
    const table = (what, rows) => make("table", { "aria-label": what }, make("caption", {}, what), rows);
    fill(this.body,
      table("Time by class", classes.sort((a, b) => b.share - a.share).map(({ name, text, share }) =>
        row([make("i", { class: `swatch ${name}`, style: name === "nothing" ? undefined : { "--color": `var(--time-${name})` } }), " ", text], share))),
      !isExact && make("p", { class: "hint" }, `Classes are known at a resolution of ${seconds(level.width)}.`),
      functions.length > 0 && table("Time by function",
        functions.slice(0, FUNCTIONS).map(({ name, time }) => row(name, time / whole))),
      exportButtons("window", () => this.rows),
      this.samples());
  }

  // The samples of the window, as a flame graph.
  samples() {
    const { data } = this;
    const counts = data.sampled(this.window);
    const { parent } = data.model.callpaths;
    for (let position = counts.length - 1; position >= 0; position--) if (parent[position] >= 0) counts[parent[position]] += counts[position];
    const all = counts.reduce((sum, count, position) => (parent[position] < 0 ? sum + count : sum), 0);
    if (!all) return null;
    const name = (position) => data.callName(position);
    const text = (position) => {
      const share = counts[position] / all;
      return `${percent(share)} ± ${percent(LIKELY * Math.sqrt(Math.max(share * (1 - share), 1 / all) / all))}, ${plural(counts[position], "sample")}`;
    };
    const look = (position) => ({ style: { "background-color": pale(`--time-${data.classes[data.calls.classes[position]][0]}`, 0.4) } });
    this.icicle.show({ parent, width: counts, name, text, look, tooltip: (position) => [make("b", {}, name(position)), make("div", {}, text(position))] });
    return make("section", { class: "of-samples" }, make("h3", {}, `${plural(all, "sample")} of the call path`), this.icicle.node);
  }

  // Time of each function in the window, without callees, longest first.
  functions(times) {
    const sums = new Map();
    times.forEach((time, position) => sums.set(this.data.callName(position), (sums.get(this.data.callName(position)) ?? 0) + time));
    return [...sums].map(([name, time]) => ({ name, time })).filter(({ time }) => time > 1e-12).sort((a, b) => b.time - a.time);
  }

  // Time of each class in the window; waiting replaces the class of the call in which it lies.
  classTimes(times) {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const { location, position, begin, end: ends } = data.waits;
    const sums = new Array(data.planes).fill(0);
    times.forEach((time, position) => { sums[data.calls.classes[position]] += time; });
    const inside = Array.from(begin, (_, i) => i)
      .filter((i) => location[i] >= first && location[i] < last && position[i] >= 0 && begin[i] < to && ends[i] > from)
      .sort((a, b) => location[a] - location[b] || begin[a] - begin[b]);
    let [row, end] = [-1, from];
    for (const i of inside) {
      // Waits of one location may overlap.
      if (location[i] !== row) [row, end] = [location[i], from];
      const until = Math.min(to, ends[i]);
      const time = until - Math.max(end, begin[i]);
      if (time <= 0) continue;
      const plane = data.calls.classes[position[i]];
      const part = Math.min(time, sums[plane]);
      sums[plane] -= part;
      sums[data.planes - 1] += part;
      end = until;
    }
    return sums;
  }

  // Time of each call path in the window, without callees.
  exclusive() {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const { enter, leave, position } = data.calls;
    const times = new Map();
    const add = (call, time) => times.set(position[call], (times.get(position[call]) ?? 0) + time);
    const inside = (begin, end) => Math.max(0, Math.min(end, to) - Math.max(begin, from));
    for (let location = first; location < last; location++) {
      const open = [];
      for (let i = data.rowOf[location]; i < data.rowOf[location + 1] && enter[i] <= to; i++) {
        while (open.length && leave[open.at(-1)] <= enter[i]) open.pop();
        const time = inside(enter[i], leave[i]);
        if (time > 0) {
          add(i, time);
          if (open.length) add(open.at(-1), -time);
        }
        open.push(i);
      }
    }
    return times;
  }
}
