// The iterations of the main loop as a card of the overview: the duration of each, and a link to it in the timeline.

import { fitCanvas } from "../charts.js";
import { css } from "../color.js";
import { columnBlock, documentBlock, hasBlock } from "../data.js";
import { fill, make, tip } from "../dom.js";
import { clock, percent, plural, seconds } from "../format.js";
import { exploreLink, timelineLink } from "../link.js";
import { ranking } from "../ranking.js";
import { addCard } from "./cards.js";

const TRENDS = { grows: "they get longer", shrinks: "they get shorter" };

class Iterations {
  constructor(model) {
    this.model = model;
    /** @type {any} */
    this.loop = null;
    /** @type {Record<string, any>} */
    this.rows = {};
    this.chosen = -1;
    this.node = make("section", { class: "card iterations", hidden: true });
    this.open();
  }

  async open() {
    [this.loop, this.rows] = await Promise.all([documentBlock("iterations"), columnBlock("iterations-rows")]);
    this.canvas = make("canvas", {
      tabindex: 0, role: "img", "aria-label": `Duration of ${this.count} iterations`, onmousemove: (event) => this.hover(event),
      onmouseleave: () => tip.hide(), onclick: (event) => this.choose(this.at(event)), onkeydown: (event) => this.key(event),
    });
    this.frame = make("div", { class: "bars" }, this.canvas);
    this.detail = make("p", { class: "picked", role: "status" });
    fill(this.node, make("h2", {}, "Iterations"), make("p", { class: "lead" }, this.lead()), make("figure", {}, this.frame,
      make("figcaption", {}, make("span", {}, "iteration 0"), this.legend(), make("span", {}, String(this.count - 1)))),
      this.detail, this.worst());
    this.node.hidden = false;
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  get count() {
    return this.rows.begin.length;
  }

  lead() {
    const { loop } = this;
    const { minimum, maximum, median } = loop.duration;
    const trend = loop.trend.kind === "steady" ? "" : `; ${TRENDS[loop.trend.kind]} by ${percent(Math.abs(loop.trend.change))} over the run`;
    const length = seconds(minimum) === seconds(maximum) ? `${seconds(median)} each`
      : `${seconds(minimum)} to ${seconds(maximum)}, median ${seconds(median)}`;
    const odd = loop.outliers.length ? ` ${plural(loop.outliers.length, "outlier")} take${loop.outliers.length > 1 ? "" : "s"} more than ${seconds(loop.limit)}.` : "";
    return [`The main loop takes ${percent(loop.share)} of the focus in ${plural(loop.iterations, "iteration")} of ${length}${trend}.${odd} Each begins with `,
    loop.parameter && [make("code", {}, loop.parameter), " taking another value in "],
    make("a", { href: exploreLink("time", loop.callpath_id) }, make("code", {}, loop.names.slice(-2).join(" → "))), "."];
  }

  legend() {
    const parts = [["work", "computation"], ["waiting", "waiting"], ["library", "other, and neighboring iterations"]];
    return make("span", { class: "keys" }, parts.map(([name, text]) =>
      make("span", {}, make("i", { class: `swatch ${name}`, style: { "--color": `var(--time-${name})` } }), ` ${text} `)),
    " average over ranks", this.count > this.columns ? "; where iterations share a column, the longest" : "");
  }

  // The longest iterations as a table, accessible without a pointer.
  worst() {
    const order = Array.from({ length: this.count }, (_, i) => i).sort((a, b) => this.rows.duration[b] - this.rows.duration[a]).slice(0, 5);
    const timeline = hasBlock("timeline");
    const heads = ["Longest", "Duration", "Waiting", "Parallel efficiency", "Load balance", "Slowest rank", "Most waiting"];
    return make("div", { class: "wide" }, ranking("plain", heads, order.map((i) => [
      timeline ? make("a", { class: "go", href: this.link(i) }, this.name(i)) : this.name(i), seconds(this.rows.duration[i]),
      percent(this.rows.waiting[i] / this.rows.duration[i]), percent(this.rows.parallel_efficiency[i]), percent(this.rows.load_balance[i]),
      `rank ${this.rows.slowest[i]}`, this.mostWaiting(i),
    ]), (column) => column > 0 && column < 5));
  }

  // The number of an iteration, and the value of its parameter if that differs.
  name(i, word = "iteration") {
    const { parameter, values } = this.loop;
    if (!values.length) return `${word} ${i}`;
    return `${word} ${i} (${parameter} ${values[i] === null ? "differs" : `= ${values[i]}`})`;
  }

  mostWaiting(i) {
    let best = -1;
    this.loop.kinds.forEach((_, number) => {
      if (this.rows[`kind-${number}`][i] > (best < 0 ? 0 : this.rows[`kind-${best}`][i])) best = number;
    });
    return best < 0 ? "–" : `${this.loop.kinds[best][1]} ${seconds(this.rows[`kind-${best}`][i])}`;
  }

  link(i) {
    return timelineLink(this.rows.begin[i], this.rows.end[i]);
  }

  // Columns of the chart: one per iteration, or as many as fit.
  get columns() {
    return Math.min(this.count, Math.max(1, Math.floor((this.frame?.clientWidth || 600) / 2)));
  }

  /** @returns {[number, number]} */
  range(column) {
    const first = Math.floor((this.count * column) / this.columns);
    return [first, Math.max(first + 1, Math.floor((this.count * (column + 1)) / this.columns))];
  }

  longest([first, end]) {
    let best = first;
    for (let i = first + 1; i < end; i++) if (this.rows.duration[i] > this.rows.duration[best]) best = i;
    return best;
  }

  repaint() {
    if (this.frame) this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!width || !height) return;
    const context = fitCanvas(this.canvas, width, height);
    const { columns, rows } = this;
    const most = this.loop.duration.maximum || 1;
    const step = width / columns;
    const gap = step > 4 ? 1 : 0;
    const colors = ["work", "waiting", "library"].map((name) => css(`--time-${name}`));
    for (let column = 0; column < columns; column++) {
      const range = this.range(column);
      const i = this.longest(range);
      const left = Math.round(column * step);
      const wide = Math.max(1, Math.round((column + 1) * step) - left - gap);
      const parts = [rows.computation[i], rows.waiting[i]];
      parts.push(Math.max(0, rows.duration[i] - parts[0] - parts[1]));
      let bottom = height;
      parts.forEach((part, number) => {
        const high = (height * part) / most;
        context.fillStyle = colors[number];
        context.fillRect(left, bottom - high, wide, high);
        bottom -= high;
      });
      if (this.chosen >= range[0] && this.chosen < range[1]) {
        context.strokeStyle = css("--ink");
        context.lineWidth = 2;
        context.strokeRect(left, 1, wide, height - 2);
      }
    }
    this.node.dataset.columns = String(columns);
  }

  at(event) {
    const { left, width } = this.canvas.getBoundingClientRect();
    const column = Math.min(this.columns - 1, Math.max(0, Math.floor(((event.clientX - left) * this.columns) / width)));
    return this.longest(this.range(column));
  }

  hover(event) {
    const i = this.at(event);
    tip.show(event, make("b", {}, this.name(i, "Iteration")), ` at ${clock(this.rows.begin[i], this.rows.duration[i])}`, make("table", {}, [
      ["duration", seconds(this.rows.duration[i])], ["computation", seconds(this.rows.computation[i])],
      ["waiting", seconds(this.rows.waiting[i])], ["parallel efficiency", percent(this.rows.parallel_efficiency[i])],
      ["slowest", `rank ${this.rows.slowest[i]}`], ["most waiting", this.mostWaiting(i)],
    ].map(([name, text]) => make("tr", {}, make("th", {}, name), make("td", {}, text)))));
  }

  choose(i) {
    this.chosen = i;
    const { rows } = this;
    const critical = rows.critical_rank[i] >= 0 ? `; the critical path has ${seconds(rows.critical_path[i])} in it, most on rank ${rows.critical_rank[i]}` : "";
    fill(this.detail, make("b", {}, this.name(i, "Iteration")), `: ${seconds(rows.duration[i])} from ${clock(rows.begin[i], rows.duration[i])}, parallel efficiency ${percent(rows.parallel_efficiency[i])}, `
      + `slowest rank ${rows.slowest[i]}${critical}. `,
    hasBlock("timeline") && make("a", { class: "go", href: this.link(i) }, "Show it on the timeline"));
    this.draw();
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -this.count, End: this.count };
    if (!(event.key in steps)) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(Math.min(this.count - 1, Math.max(0, (this.chosen < 0 ? 0 : this.chosen + steps[event.key]))));
  }
}

addCard(40, (model) => (hasBlock("iterations") ? new Iterations(model) : null));
