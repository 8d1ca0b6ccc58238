// Flame graphs: where the time is, where the critical path is, and what a late rank spends more time in than the others.

import { pale } from "../color.js";
import { columnBlock, documentBlock, hasBlock } from "../data.js";
import { choice, fill, hiddenHeading, make } from "../dom.js";
import { percent, placeName, plural, seconds } from "../format.js";
import { Icicle } from "../icicle.js";
import { noteAddress, numberIn } from "../link.js";
import { addView } from "../sections.js";

const AWAY_NAME = "in the system, or without a core";
// Standard deviations of what is no chance, and of the interval at 95%.
const [CERTAIN_FROM, LIKELY_FROM] = [2.58, 1.96];
// Smaller parts of the largest difference have no color.
const FAINT_BELOW = 0.01;

export class Flames {
  constructor(model) {
    this.model = model;
    this.source = "time";
    /** @type {Record<string, any> | null} sums over locations, by row */
    this.rows = null;
    /** @type {any} the same for the latest locations */
    this.late = null;
    /** @type {any} classes, the latest locations, and how many are compared */
    this.about = null;
    this.node = make("section", { class: "overview flames", "aria-label": "Flame graph" });
  }

  async follow(query) {
    if (!this.rows) {
      [this.rows, this.late, this.about] = await Promise.all([columnBlock("flames"), columnBlock("flames-latest"), documentBlock("flames-about")]);
      this.build();
    }
    const place = this.about.latest.indexOf(numberIn(query, "place", -1));
    if (query.has("source")) this.source = query.get("source");
    if (!this.sources.has(this.source)) this.source = "time";
    this.choices.show(this.source);
    if (place >= 0) this.which.value = String(place);
    this.show(this.model.callNumber.has(numberIn(query, "call", -1)) ? this.model.callNumber.get(numberIn(query, "call", -1)) - this.model.shift : -1);
    this.node.dataset.shown = "";
  }

  build() {
    const { rank, thread, latest } = this.about;
    const sources = [["time", "Time", "The processor time of all ranks"], ["critical", "Critical path", "The time that determines how long the run takes"]];
    if (latest.length) sources.push(["more", "Difference", "A late rank against the mean of the others"]);
    this.sources = new Set(sources.map(([key]) => key));
    this.choices = choice("What the width means", sources, this.source, (key) => { this.source = key; this.show(); });
    const threaded = new Set(rank).size < rank.length;
    this.which = make("select", { "aria-label": "Which rank, the latest first", onchange: () => this.show() },
      latest.map((_, i) => make("option", { value: i }, placeName(rank[i], thread[i], undefined, threaded))));
    this.hits = make("span", { class: "hint", role: "status" });
    this.lead = make("p", { class: "lead" });
    this.searchBox = make("input", { type: "search", placeholder: "Find a function", "aria-label": "Find a function", spellcheck: "false", oninput: () => this.search() });
    this.icicle = new Icicle("Functions below their callers", (box) => this.note(box));
    this.legend = make("div", { class: "swatches" });
    fill(this.node, hiddenHeading("Flame graph"), make("section", { class: "card" },
      make("header", { class: "toolbar" }, make("h2", {}, "Flame graph"), this.choices.node, this.which,
        make("button", { type: "button", onclick: () => this.icicle.all() }, "All"), this.searchBox, this.hits),
      this.lead, this.icicle.node, this.legend));
  }

  // The numbers of boxes: positions in the call tree, and after them what samples do not stand for there.
  get positions() {
    return this.model.positions;
  }

  // The location that is compared with the others.
  get place() {
    return this.about.latest[Number(this.which.value)];
  }

  // Sums over call paths and what they call: `own` of each row, by box.
  inclusive(rows, own, where = null) {
    const { positions } = this;
    const { parent } = this.model.callpaths;
    const sums = new Float64Array(2 * positions);
    rows.position.forEach((position, row) => {
      if (where === null || rows.location[row] === where) sums[position + (rows.away[row] ? positions : 0)] += own[row];
    });
    for (let position = positions - 1; position >= 0; position--) {
      sums[position] += sums[position + positions];
      if (parent[position] >= 0) sums[parent[position]] += sums[position];
    }
    return sums;
  }

  // Values by box that are known with what is called.
  known(rows, values, where = null) {
    const sums = new Float64Array(2 * this.positions);
    rows.position.forEach((position, row) => {
      if (where === null || rows.location[row] === where) sums[position + (rows.away[row] ? this.positions : 0)] += values[row];
    });
    return sums;
  }

  show(position = -1) {
    const { rows, late, positions } = this;
    const above = this.model.callpaths.parent;
    const parent = Array.from({ length: 2 * positions }, (_, box) => (box < positions ? above[box] : box - positions));
    const isMore = this.source === "more";
    this.which.hidden = !isMore;
    const values = isMore ? this.difference(rows, late) : this.sums(rows);
    const name = (box) => (box < positions ? this.model.regions[this.model.callpaths.region[box]].short : AWAY_NAME);
    const tooltip = (box) => {
      const region = box < positions ? this.model.regions[this.model.callpaths.region[box]] : null;
      return [make("b", {}, region ? region.name : AWAY_NAME), make("div", {}, values.text(box)),
        region?.file && make("div", { class: "hint" }, `${region.file}${region.line ? `:${region.line}` : ""}`)];
    };
    fill(this.lead, values.lead);
    fill(this.legend, values.legend);
    this.icicle.show({ parent, width: values.width, name, text: values.text, look: values.look, tooltip }, position);
    this.search();
    this.note(this.icicle.top);
  }

  // All locations together.
  sums(rows) {
    const critical = this.source === "critical";
    const width = this.inclusive(rows, critical ? rows.critical : rows.time);
    const variance = this.known(rows, critical ? rows.critical_variance : rows.variance);
    const samples = this.inclusive(rows, rows.samples);
    const whole = width.reduce((sum, value, box) => (box < this.positions && this.model.callpaths.parent[box] < 0 ? sum + value : sum), 0);
    const text = (box) => `${seconds(width[box])}${variance[box] > 0 ? ` ± ${seconds(LIKELY_FROM * Math.sqrt(variance[box]))}` : ""}, ${percent(width[box] / whole)}${samples[box] ? `, ${plural(samples[box], "sample")}` : ""}`;
    const present = new Set(rows.class);
    const classes = this.about.classes.map(([name, of], number) => present.has(number) && swatch(of, "", { "--color": `var(--time-${name})` }));
    const of = this.model.story.focus.phrase;
    return { width, text, look: (box) => this.look(box), legend: [...classes, ...this.samples(), rows.away.some(Boolean) && swatch(AWAY_NAME, "away")],
      lead: critical ? `The critical path of ${of}: only what is on it determines how long the run takes.` : `The processor time of all ranks in ${of}.` };
  }

  // The legend for what only samples say.
  samples() {
    return this.model.facts.samples ? [swatch("known by samples", "sampled")] : [];
  }

  look(box) {
    const { rows, positions } = this;
    if (box >= positions) return { class: "away" };
    const [name] = this.about.classes[rows.class[box]];
    return { class: rows.sampled[box] ? "sampled" : undefined, style: { "background-color": pale(`--time-${name}`, 0.4) } };
  }

  // A late rank against the mean of the others.
  difference(rows, late) {
    const place = this.place;
    const others = Math.max(1, this.about.compared - 1);
    const [own, all] = [this.inclusive(late, late.time, place), this.inclusive(rows, rows.compared_time)];
    const [ownVariance, allVariance] = [this.known(late, late.variance, place), this.known(rows, rows.compared_variance)];
    const samples = this.inclusive(rows, rows.compared_samples);
    const mean = all.map((sum, box) => Math.max(0, (sum - own[box]) / others));
    const width = mean.map((value, box) => value + own[box]);
    const more = mean.map((value, box) => own[box] - value);
    const error = ownVariance.map((value, box) => Math.sqrt(value + Math.max(0, allVariance[box] - value) / others ** 2));
    const most = more.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
    const isCertain = (box) => Math.abs(more[box]) > Math.max(CERTAIN_FROM * error[box], FAINT_BELOW * most);
    const who = this.which.selectedOptions[0].textContent;
    const text = (box) => `${seconds(own[box])} on ${who}, ${seconds(mean[box])} on others: ${more[box] < 0 ? "" : "+"}${seconds(more[box])}`
      + `${error[box] > 0 ? ` ± ${seconds(LIKELY_FROM * error[box])}` : ""}${isCertain(box) || !error[box] ? "" : ", which may be chance"}${samples[box] ? `, ${plural(samples[box], "sample")}` : ""}`;
    const look = (box) => {
      const sampled = box < this.positions && rows.sampled[box] ? "sampled" : "";
      if (!isCertain(box)) return { class: `${sampled} same` };
      const color = pale(more[box] > 0 ? "--bad" : "--less", 0.15 + 0.3 * Math.min(1, Math.abs(more[box]) / most));
      return { class: `${sampled} ${more[box] > 0 ? "more" : "less"}`, style: { "background-color": color } };
    };
    return { width, text, look,
      lead: `What ${who} spends more or less time in than the others do on average. The width is the time of both together.`,
      legend: [swatch(`more on ${who}`, "", { "--color": "var(--bad)" }), swatch("less", "", { "--color": "var(--less)" }), swatch("the same, or chance", "same"), ...this.samples()] };
  }

  search() {
    const found = this.icicle.find(this.searchBox.value);
    fill(this.hits, found && `${plural(found.count, "box")}, ${percent(found.share)}`);
  }

  note(box) {
    const position = box >= this.positions ? box - this.positions : box;
    noteAddress("flames", { source: this.source, ...(this.source === "more" ? { place: this.place } : {}),
      ...(position >= 0 ? { call: this.model.callpaths.id[position] } : {}) });
  }

  repaint() {
    if (this.icicle?.boxes) this.icicle.draw();
  }
}

// An entry of the legend.
function swatch(text, look = "", style = {}) {
  return make("span", {}, make("i", { class: `swatch ${look}`, style }), text);
}

addView({ name: "flames", title: "Flames", key: "g", order: 32, exists: () => hasBlock("flames"), View: Flames });
