// Many runs: a scaling study, or a history.

import { documentBlock } from "./data.js";
import { fill, hiddenHeading, make } from "./dom.js";
import { percent, plural, quantity, seconds } from "./format.js";
import { Frame, openPage } from "./frame.js";
import { Stacks, curve, factorText, lines, runName } from "./series_charts.js";
import { exportButtons } from "./table_export.js";

const VIEWS = { runs: "Runs", scaling: "Call paths" };

const HELP = [
  "Runs are ordered by number of processes, by date, or as given.",
  "Efficiencies follow POP: each is the product of those indented below it, 80% is acceptable, and scaling efficiencies refer to the first run.",
  "A scaling model describes how the average time of a process grows with the number of processes p, by a constant and one term. "
    + "Its error is how far it is off for a run that was left out of the fit.",
];

const KEYS = [["o  e", "runs, call paths"], ["t", "light or dark"], ["?", "this help"]];
const DEPTH = {
  parallel_efficiency: 1, load_balance: 2, communication_efficiency: 2, serialization: 3, transfer: 3, computation_scaling: 1,
  instruction_scaling: 2, ipc_scaling: 2, frequency_scaling: 2,
  hybrid_load_balance: 1, hybrid_communication_efficiency: 1, mpi_parallel_efficiency: 1, mpi_load_balance: 2, mpi_communication_efficiency: 2,
  openmp_parallel_efficiency: 1, openmp_load_balance: 2, openmp_communication_efficiency: 2,
};
const PLAIN = ["speedup", "ipc"];
const NUMBERS = new Set(["Ranks", "Threads", "Run time (s)", "CPU time (s)", "Waiting (s)"]);

class App extends Frame {
  constructor(study) {
    const { runs } = study;
    super(VIEWS, make("span", { class: "run" }, `${plural(runs.length, "run")}, ${runs[0].name} to ${runs.at(-1).name}`), HELP, KEYS);
    this.study = study;
    this.stacks = new Stacks(study);
    this.runsView = make("div", { class: "overview series" }, this.headline(), this.gate(), this.efficiencies(), this.stacks.node,
      this.waits(), this.table(), study.notes.map((note) => make("p", { class: "soft" }, note)), make("footer", {}, `whywait ${study.whywait}`));
    this.metric = Object.keys(study.places)[0];
    this.rows = make("tbody");
    this.scalingView = make("div", { class: "overview series" }, hiddenHeading("Call paths"), this.places());
    this.follow();
  }

  follow() {
    const { shown } = this.arrive();
    fill(document.getElementById("view"), shown === "scaling" ? this.scalingView : this.runsView);
    scrollTo(0, 0);
  }

  key(event) {
    this.act(event, { o: () => { location.hash = "#runs"; }, e: () => { location.hash = "#scaling"; } });
  }

  // The header of a run's column.
  heads() {
    const { runs, over } = this.study;
    return runs.map((run) => make("th", { scope: "col", title: [run.name, run.date].filter(Boolean).join(", ") },
      over === "processes" ? plural(run.processes, "rank") : over === "date" ? run.date : run.name));
  }

  headline() {
    const { runs, efficiencies, badge, focus, over } = this.study;
    const parallel = efficiencies.find((row) => row.name === "parallel_efficiency");
    const [first, last] = [parallel?.values[0], parallel?.values.at(-1)];
    const picture = document.importNode(new DOMParser().parseFromString(badge, "image/svg+xml").documentElement, true);
    const what = over === "processes" ? `From ${plural(runs[0].processes, "rank")} to ${runs.at(-1).processes.toLocaleString("en-US")}` : `From ${runs[0].name} to ${runs.at(-1).name}`;
    return make("section", { class: "headline" },
      make("div", {}, make("h1", {}, plural(runs.length, "run")), make("p", {}, `${what}. Shares are of ${focus}.`), picture),
      make("p", { class: "verdict" }, make("b", { class: last !== null && last < 0.8 ? "bad" : "" }, last === null ? "–" : percent(last)),
        ` parallel efficiency${runs.length > 1 && first !== null ? `, after ${percent(first)} in the first run` : ""}`));
  }

  gate() {
    const { gate } = this.study;
    if (!gate) return null;
    const kept = gate.limits.filter((limit) => !gate.failed.some((one) => one.limit === limit));
    return make("section", { class: "card gate" }, make("h2", {}, gate.failed.length ? "Limits exceeded" : "All limits kept"),
      make("ul", {}, gate.failed.map((one) => make("li", { class: "bad" }, make("code", {}, one.limit), ` in ${one.run}, after ${one.baseline}`)),
        kept.map((limit) => make("li", {}, make("code", {}, limit), " is kept"))));
  }

  efficiencies() {
    const { efficiencies, runs } = this.study;
    const text = (row, value) => (value === null ? "–" : PLAIN.includes(row.name) ? value.toFixed(2) : percent(value) || "0.0%");
    const judged = (row, value) => {
      if (value === null || PLAIN.includes(row.name)) return "";
      const good = row.name === "load_imbalance" ? 1 - value : value;
      return good >= 0.8 ? "good" : good >= 0.6 ? "fair" : "poor";
    };
    const shown = efficiencies.filter((row) => runs.length > 1 || !["global_efficiency", "computation_scaling", "speedup"].includes(row.name));
    const rows = () => [["Efficiency", ...runs.map((run) => run.name)], ...shown.map((row) => [row.label, ...row.values])];
    const speedup = efficiencies.find((row) => row.name === "speedup");
    const drawn = ["parallel_efficiency", "load_balance", "communication_efficiency"]
      .map((name) => shown.find((row) => row.name === name)).filter(Boolean);
    return make("section", { class: "card" },
      make("header", { class: "toolbar" }, make("h2", {}, "Efficiencies"), exportButtons("efficiencies", rows)),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Efficiencies of all runs" }, make("table", { class: "pop" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Run"), this.heads())),
        make("tbody", {}, shown.map((row) => make("tr", {},
          make("th", { scope: "row", title: row.formula, style: { "--depth": DEPTH[row.name] ?? 0 } }, row.label),
          row.values.map((value) => make("td", { class: judged(row, value) }, text(row, value)))))))),
      runs.length > 1 && make("div", { class: "pair" },
        lines("Efficiencies", runs, drawn.map((row) => ({ label: row.label, values: row.values })), { text: percent, most: 1, named: (i) => runName(this.study, runs[i]) }),
        this.study.over === "processes" && speedup && lines("Speedup", runs, [
          { label: "Speedup", values: speedup.values },
          { label: "Ideal", values: runs.map((run) => run.processes / runs[0].processes), faint: true },
        ], { text: factorText, along: runs.map((run) => run.processes) })));
  }

  waits() {
    const { waits, runs } = this.study;
    if (!waits.length) return null;
    const rows = () => [["Wait state (s)", ...runs.map((run) => run.name)], ...waits.map((row) => [row.label, ...row.values])];
    const share = (row, i) => (runs[i].time ? row.values[i] / runs[i].time : 0);
    const most = Math.max(...waits.flatMap((row) => row.values.map((_, i) => share(row, i)))) || 1;
    return make("section", { class: "card" },
      make("header", { class: "toolbar" }, make("h2", {}, "Wait states"), make("span", { class: "hint" }, "shares of the time"), exportButtons("wait_states", rows)),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Wait states of all runs" }, make("table", { class: "pop" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Wait state"), this.heads())),
        make("tbody", {}, waits.map((row) => make("tr", {}, make("th", { scope: "row" }, row.label),
          row.values.map((value, i) => make("td", { class: "heat", title: seconds(value), style: { "--heat": `${(0.5 * share(row, i) / most).toFixed(3)}` } },
            percent(share(row, i)) || "–"))))))));
  }

  table() {
    const { runs } = this.study;
    /** @type {[string, (run: any) => any][]} */
    const columns = [["Run", (run) => run.name], ["Date", (run) => run.date ?? ""], ["Ranks", (run) => run.processes],
      ["Threads", (run) => run.threads], ["Run time (s)", (run) => run.length], ["CPU time (s)", (run) => run.time], ["Waiting (s)", (run) => run.waiting]];
    const text = (name, value) => (value === null || value === undefined ? "–" : name.endsWith("(s)") ? seconds(value) : value.toLocaleString("en-US"));
    return make("section", { class: "card" },
      make("header", { class: "toolbar" }, make("h2", {}, "Runs"),
        exportButtons("runs", () => [columns.map(([name]) => name), ...runs.map((run) => columns.map(([, of]) => of(run)))])),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "All runs" }, make("table", { class: "ranking plain" },
        make("thead", {}, make("tr", {}, columns.map(([name]) => make("th", { scope: "col", class: NUMBERS.has(name) ? "number-of" : undefined }, name.replace(" (s)", ""))))),
        make("tbody", {}, runs.map((run) => make("tr", {}, columns.map(([name, of]) => make("td", { class: NUMBERS.has(name) ? "number-of" : undefined }, text(name, of(run))))))))));
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
    this.list();
    return make("section", { class: "card functions" },
      make("header", { class: "toolbar" }, make("h2", {}, "Call paths"), choose, find, exportButtons("call_paths", () => this.csvRows())),
      make("p", { class: "lead" }, lead),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Call paths in all runs" }, make("table", { class: "ranking plain places" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Call path"), make("th", { scope: "col" }, "Trend"),
          runs.length <= 8 ? this.heads() : [this.heads()[0], this.heads().at(-1)],
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

openPage(documentBlock("series"), (study) => new App(study));
