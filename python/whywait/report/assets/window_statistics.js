// Statistics of the timeline's window: time by class, and by function if individual calls are known.

import { fill, make } from "./dom.js";
import { percent, seconds } from "./format.js";
import { exportButtons } from "./table_export.js";

const FUNCTIONS = 12;

export class WindowStatistics {
  constructor(data) {
    this.data = data;
    this.body = make("div", { class: "tables" });
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
    const level = data.level(0, 0);
    const shares = data.shares(level, from, to - from, 1, first, last, new Float32Array(data.planes));
    const classes = data.classes.map(([name, text], plane) => ({ name, text, share: shares[plane] })).filter(({ share }) => share > 0);
    const functions = this.functions();
    this.rows = [["what", "share", "seconds"], ...classes.map(({ text, share }) => [text, share, share * whole]),
      ...functions.map(({ name, time }) => [name, time / whole, time])];
    const row = (head, share) => make("tr", {}, make("th", {}, head), make("td", {}, percent(share)), make("td", {}, seconds(share * whole)));
    fill(this.body,
      make("table", { "aria-label": "Time by class" }, classes.sort((a, b) => b.share - a.share).map(({ name, text, share }) =>
        row([make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name})` } }), " ", text], share))),
      functions.length > 0 && make("table", { "aria-label": "Time by function" },
        functions.slice(0, FUNCTIONS).map(({ name, time }) => row(name, time / whole))),
      exportButtons("window", () => this.rows));
  }

  // Exclusive time of each function in the window, longest first.
  functions() {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const { enter, leave, position } = data.calls;
    const times = new Map();
    const add = (call, time) => times.set(data.callName(position[call]), (times.get(data.callName(position[call])) ?? 0) + time);
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
    return [...times].map(([name, time]) => ({ name, time })).filter(({ time }) => time > 1e-12).sort((a, b) => b.time - a.time);
  }
}
