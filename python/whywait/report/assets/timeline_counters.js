// A counter in the window of the timeline: one lane per location, or per group of neighbors if there are many; darker
// means more.

import { fitCanvas } from "./charts.js";
import { css, dark, scaleColors } from "./color.js";
import { fill, make, tip } from "./dom.js";
import { digits, counted } from "./format.js";
import { GUTTER } from "./timeline_paint.js";

// Heights in pixels: all lanes together at most, one lane, and its name.
const LANES_HEIGHT = 132;
const LANE_HEIGHT = 22;
const NAME_HEIGHT = 11;

export class CounterLanes {
  /** @param {import("./report/timeline.js").Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.courses = timeline.data.courses;
    this.chosen = 0;
    /** @type {HTMLCanvasElement} */
    this.canvas = make("canvas", {
      role: "img", "aria-label": "Counter", onmousemove: (event) => this.hover(event), onmouseleave: () => tip.hide(),
    });
    this.frame = make("div", { class: "lanes" }, this.canvas);
    this.scale = make("span", { class: "scale" });
    const names = this.courses?.counters ?? [];
    this.list = make("select", { "aria-label": "Counter", onchange: () => { this.chosen = Number(this.list.value); timeline.draw(); } },
      names.map(([name], number) => make("option", { value: String(number) }, name)));
    this.node = names.length > 0 && make("details", { class: "counters-of", ontoggle: () => { timeline.draw(); } },
      make("summary", {}, "Counters"), make("div", { class: "chosen" }, this.list, this.scale), this.frame);
  }

  get isShown() {
    return Boolean(this.node) && this.node.open;
  }

  // The mean of a row over a time span; NaN if unknown.
  mean(row, from, to) {
    const { bins, width } = this.courses;
    const values = this.timeline.data.counters[this.chosen];
    const begin = Math.max(0, Math.min(bins, Math.floor(from / width + 1e-9)));
    const end = Math.max(begin + 1, Math.min(bins, Math.ceil(to / width - 1e-9)));
    let [sum, number] = [0, 0];
    for (let bin = begin; bin < end && bin < bins; bin++) {
      const value = values[row * bins + bin];
      if (Number.isNaN(value)) continue;
      sum += value;
      number++;
    }
    return sum / number;
  }

  // The rows with the counter in the window, then the locations that only record metrics.
  lanes() {
    const { merged, rows, bins } = this.courses;
    const { window: { first, last }, data: { count, counters } } = this.timeline;
    const values = counters[this.chosen];
    const inside = (row) => (row + 1) * merged > first && row * merged < last;
    return Array.from({ length: rows }, (_, row) => row).filter((row) => (inside(row) || row * merged >= count)
      && values.subarray(row * bins, (row + 1) * bins).some((value) => !Number.isNaN(value)));
  }

  draw() {
    if (!this.isShown) return;
    const { window: { from, to }, data } = this.timeline;
    const width = this.frame.clientWidth;
    const rows = this.lanes();
    const high = rows.length ? Math.min(LANE_HEIGHT, LANES_HEIGHT / rows.length) : LANE_HEIGHT;
    const context = fitCanvas(this.canvas, width, Math.max(LANE_HEIGHT, high * rows.length));
    const columns = Math.max(1, Math.round(width - GUTTER));
    const step = (to - from) / columns;
    const means = rows.map((row) => Float64Array.from({ length: columns }, (_, column) => this.mean(row, from + column * step, from + (column + 1) * step)));
    let [least, most] = [0, 0];
    for (const lane of means) {
      for (const value of lane) {
        if (value > most) most = value;
        if (value < least) least = value;
      }
    }
    this.shown = { rows, means, high, step };
    const tones = scaleColors();
    const gap = high >= 6 ? 1 : 0;
    for (const [at, lane] of means.entries()) {
      for (let column = 0; column < columns;) {
        // Draw adjacent pixels of one color at once.
        const tone = shade(lane[column], least, most);
        let end = column + 1;
        while (end < columns && shade(lane[end], least, most) === tone) end++;
        if (tone >= 0) {
          context.fillStyle = tones[tone];
          context.fillRect(GUTTER + column, at * high, end - column, Math.max(0.5, high - gap));
        }
        column = end;
      }
    }
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = css("--soft");
    const every = Math.max(1, Math.ceil((NAME_HEIGHT + 2) / high));
    for (let at = 0; at < rows.length; at += every) {
      context.fillText(data.shortName(rows[at] * this.courses.merged), GUTTER - 8, Math.max(NAME_HEIGHT / 2, (at + 0.5) * high));
    }
    const [name, unit] = this.courses.counters[this.chosen];
    const text = rows.length ? `${number(least)} to ${number(most)} ${unit}` : "nothing of it is known here";
    fill(this.scale, rows.length > 0 && make("i", { class: "ramp", style: { "--ramp": `linear-gradient(to right, ${tones[0]}, ${tones[128]}, ${tones[255]})` } }), text,
      this.courses.merged > 1 && ` (mean of ${this.courses.merged} neighbors a lane)`);
    this.canvas.setAttribute("aria-label", `${name} in the window: ${rows.length} lanes, ${text}`);
    Object.assign(this.canvas.dataset, { lanes: String(rows.length), least: String(least), most: String(most), theme: dark() ? "dark" : "light" });
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const { rows, means, high, step } = this.shown ?? { rows: [], means: [], high: 1, step: 0 };
    const at = Math.floor((event.clientY - box.top) / high);
    const column = Math.floor(event.clientX - box.left - GUTTER);
    const value = means[at]?.[column];
    if (value === undefined) { tip.hide(); return; }
    const [name, unit] = this.courses.counters[this.chosen];
    const { data, window: { from } } = this.timeline;
    tip.show(event, make("b", {}, data.name(rows[at] * this.courses.merged)), ` at ${this.timeline.clock(from + (column + 0.5) * step)}`, make("br"),
      `${name}: ${Number.isNaN(value) ? "not known" : `${number(value)} ${unit}`}`);
  }
}

// The color of a value, or -1 without one.
function shade(value, least, most) {
  if (Number.isNaN(value)) return -1;
  return most > least ? Math.round((255 * (value - least)) / (most - least)) : 0;
}

function number(value) {
  return Math.abs(value) >= 1e6 ? counted(value) : value === 0 ? "0" : Math.abs(value) >= 0.01 ? digits(value) : value.toPrecision(3);
}
