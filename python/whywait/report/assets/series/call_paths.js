// How call paths scale: their times in all runs, and scaling models.

import { fill, hiddenHeading, make } from "../dom.js";
import { percent, plural, quantity, seconds } from "../format.js";
import { addView } from "../sections.js";
import { exportButtons } from "../table_export.js";
import { curve, runHeads } from "./charts.js";

class CallPaths {
  constructor(study) {
    this.study = study;
    this.metric = Object.keys(study.places)[0];
    this.rows = make("tbody");
    this.node = make("div", { class: "overview series" }, hiddenHeading("Call paths"), this.places());
  }

  places() {
    const { places, runs } = this.study;
    if (!this.metric) return make("section", { class: "card" }, make("p", {}, "These runs have no times."));
    const choose = make("select", { "aria-label": "Metric", onchange: () => { this.metric = choose.value; this.list(); } },
      Object.keys(places).map((name) => make("option", { value: name }, name === "time" ? "Time" : "Waiting")));
    const find = make("input", { type: "search", placeholder: "Find", "aria-label": "Find a call path", spellcheck: "false",
      oninput: () => { this.query = find.value.trim().toLowerCase(); this.list(); } });
    const sizes = new Set(runs.map((run) => run.processes)).size;
    const lead = places[this.metric].at !== null
      ? `Average time of a process. Predictions are for ${plural(places[this.metric].at, "rank")}; the largest come first.`
      : `Average time of a process. ${sizes > 1 ? `There are no scaling models: they need five different numbers of processes, and there are ${sizes}.` : ""}`;
    const heads = runHeads(this.study);
    this.list();
    return make("section", { class: "card functions" },
      make("header", { class: "toolbar" }, make("h2", {}, "Call paths"), choose, find, exportButtons("call_paths", () => this.csvRows())),
      make("p", { class: "lead" }, lead),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Call paths in all runs" }, make("table", { class: "ranking plain places" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Call path"), make("th", { scope: "col" }, "Trend"),
          runs.length <= 8 ? heads : [heads[0], heads.at(-1)],
          places[this.metric].at !== null && [make("th", { scope: "col" }, "Model (s)"), make("th", { scope: "col" }, "Predicted"), make("th", { scope: "col" }, "Error")])),
        this.rows)));
  }

  shown() {
    const rows = this.study.places[this.metric].rows;
    return rows.filter((row) => !this.query || (row.path ?? ["whole program"]).join(" → ").toLowerCase().includes(this.query));
  }

  csvRows() {
    const { runs, places } = this.study;
    return [["Call path", ...runs.map((run) => `${run.name} (s)`), "Model", `Predicted for ${places[this.metric].at ?? "none"} (s)`, "Error"],
      ...this.shown().map((row) => [row.path?.join(" → ") ?? "whole program", ...row.values, row.model?.model, row.model?.predicted, row.model?.error])];
  }

  list() {
    const { runs, places } = this.study;
    fill(this.rows, this.shown().map((row) => {
      const values = runs.length <= 8 ? row.values : [row.values[0], row.values.at(-1)];
      const { model } = row;
      const grows = model && model.predicted > 1.5 * row.values.at(-1);
      return make("tr", { class: row.path ? undefined : "whole" },
        make("td", { title: row.path?.join(" → ") }, row.path
          ? make("span", { class: "path" }, row.path.length > 1 && make("span", {}, `${row.path.slice(0, -1).join(" → ")} → `), make("b", {}, row.path.at(-1)))
          : make("b", {}, "Whole program")),
        make("td", {}, curve(runs, row.values, model, places[this.metric].at)),
        values.map((value) => make("td", {}, quantity(value, "sec"))),
        places[this.metric].at !== null && [make("td", { class: "model" }, model?.model ?? "–"),
          make("td", { class: grows ? "bad" : undefined }, model ? seconds(model.predicted) : "–"),
          make("td", {}, model ? percent(model.error) || "0.0%" : "–")]);
    }));
  }
}

addView({ name: "scaling", title: "Call paths", key: "e", order: 20, View: CallPaths });
