// The flat profile: the values of each function over all of its call paths.

import { fill, hiddenHeading, make } from "../dom.js";
import { counted, percent, seconds } from "../format.js";
import { exploreLink } from "../link.js";
import { selection } from "../model.js";
import { addView } from "../sections.js";
import { exportButtons } from "../table_export.js";

// Columns that are not numeric.
const TEXTS = ["name", "share", "place"];
// Key, heading and text of each column.
/** @type {[string, string, (row: any) => string][]} */
const COLUMNS = [
  ["name", "Function", (row) => row.name], ["own", "Own time", (row) => seconds(row.own)],
  ["sampled", "By samples", (row) => seconds(row.sampled)], ["share", "Share", (row) => percent(row.share)],
  ["whole", "With callees", (row) => seconds(row.whole)], ["waiting", "Waiting in it", (row) => seconds(row.waiting)],
  ["path", "On the critical path", (row) => seconds(row.path)], ["visits", "Visits", (row) => counted(row.visits)], ["place", "Source", (row) => row.place],
];

export class Functions {
  constructor(model) {
    this.model = model;
    this.by = "own";
    this.query = "";
    this.node = make("section", { class: "overview functions", "aria-label": "Functions" });
    this.body = make("tbody");
    this.heads = make("tr");
  }

  follow() {
    if (!this.rows) this.build();
  }

  // One row per region: exclusive values over all call paths, and inclusive time with recursion counted once.
  profile() {
    const { model } = this;
    const rows = model.regions.map((region, number) => ({
      name: region.short, long: region.name, place: region.file ? `${region.file}${region.line ? `:${region.line}` : ""}` : "",
      own: 0, sampled: 0, whole: 0, waiting: 0, path: 0, visits: 0, share: 0, callpath: -1, most: -1, number,
    }));
    const values = (name) => (model.metricNumber.has(name) ? model.byCall(selection(model.metricNumber.get(name))) : null);
    const columns = { own: values("time"), sampled: values("sampled_time"), waiting: values("waiting"), path: values("critical_path"), visits: values("visits") };
    const time = columns.own;
    for (let position = 0; position < model.positions; position++) {
      const node = position + model.shift;
      const row = rows[model.callpaths.region[position]];
      for (const [name, found] of Object.entries(columns)) row[name] += found?.own[node] ?? 0;
      const above = model.callTree.above(node);
      if (!above.some((other) => other >= model.shift && model.callpaths.region[other - model.shift] === row.number)) row.whole += time?.below[node] ?? 0;
      // The link leads to the call path with the largest value.
      const size = time?.own[node] ?? 0;
      if (size > row.most) [row.most, row.callpath] = [size, model.callpaths.id[position]];
    }
    const whole = rows.reduce((sum, row) => sum + row.own, 0);
    for (const row of rows) row.share = whole ? row.own / whole : 0;
    // Those that run only outside the focus have no time.
    return rows.filter((row) => row.callpath >= 0 && (row.whole > 0 || row.sampled > 0 || !whole));
  }

  build() {
    this.rows = this.profile();
    this.used = COLUMNS.filter(([name]) => name === "name" || this.rows.some((row) => row[name]));
    const find = make("input", { type: "search", placeholder: "Find", "aria-label": "Find a function", spellcheck: "false",
      oninput: () => { this.query = find.value.trim().toLowerCase(); this.list(); } });
    fill(this.node, hiddenHeading("Functions"), make("section", { class: "card" },
      make("header", { class: "toolbar" }, make("h2", {}, "Functions"),
        make("span", { class: "hint" }, `Sums over all calls and ranks, of ${this.model.story.focus.phrase}; visits are those of the whole run. Click a heading to sort.`), find,
        exportButtons("functions", () => this.table())),
      make("div", { class: "wide" }, make("table", { class: "ranking plain" }, make("thead", {}, this.heads), this.body))));
    this.list();
  }

  shown() {
    const { by, query } = this;
    const rows = this.rows.filter((row) => !query || row.long.toLowerCase().includes(query));
    const isText = by === "name" || by === "place";
    return rows.sort((a, b) => (isText ? a[by].localeCompare(b[by], "en", { numeric: true }) : b[by] - a[by]) || a.number - b.number);
  }

  table() {
    return [this.used.map(([name, title]) => (name === "visits" || name === "name" || name === "place" || name === "share" ? title : `${title} (s)`)),
      ...this.shown().map((row) => this.used.map(([name]) => (name === "name" ? row.long : row[name])))];
  }

  list() {
    fill(this.heads, this.used.map(([name, title]) => make("th", { "aria-sort": name !== this.by ? undefined : name === "name" || name === "place" ? "ascending" : "descending", class: TEXTS.includes(name) ? undefined : "number-of" },
      make("button", { type: "button", class: "sort", onclick: () => { this.by = name; this.list(); } }, title))));
    const most = Math.max(...this.rows.map((row) => row.share), 0) || 1;
    fill(this.body, this.shown().map((row) => make("tr", {}, this.used.map(([name, , text]) => make("td", { class: name === "share" ? "bar" : TEXTS.includes(name) ? undefined : "number-of" },
      name === "name" ? make("a", { class: "path", title: row.long, href: exploreLink(row.whole > 0 ? "time" : "sampled_time", row.callpath) }, make("b", {}, text(row)))
        : name === "share" ? [make("i", { style: { width: `${(100 * row.share) / most}%` } }), make("span", {}, text(row))] : text(row))))));
  }
}

addView({ name: "functions", title: "Functions", key: "f", order: 30, View: Functions });
