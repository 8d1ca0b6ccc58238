// The runs side by side: their efficiencies, where each spends its time, and their wait states.

import { make } from "../dom.js";
import { percent, plural, seconds } from "../format.js";
import { addView } from "../sections.js";
import { exportButtons } from "../table_export.js";
import { Stacks, factorText, lines, runHeads, runName } from "./charts.js";

const DEPTH = {
  parallel_efficiency: 1, load_balance: 2, communication_efficiency: 2, serialization: 3, transfer: 3, computation_scaling: 1,
  instruction_scaling: 2, ipc_scaling: 2, frequency_scaling: 2,
  hybrid_load_balance: 1, hybrid_communication_efficiency: 1, mpi_parallel_efficiency: 1, mpi_load_balance: 2, mpi_communication_efficiency: 2,
  openmp_parallel_efficiency: 1, openmp_load_balance: 2, openmp_communication_efficiency: 2,
};
const PLAIN = ["speedup", "ipc"];
const NUMBERS = new Set(["Ranks", "Threads", "Run time (s)", "CPU time (s)", "Waiting (s)"]);

class Runs {
  constructor(study) {
    this.study = study;
    this.stacks = new Stacks(study);
    this.node = make("div", { class: "overview series" }, this.headline(), this.gate(), this.efficiencies(), this.stacks.node,
      this.waits(), this.table(), study.notes.map((note) => make("p", { class: "soft" }, note)), make("footer", {}, `whywait ${study.whywait}`));
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
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Run"), runHeads(this.study))),
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
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Wait state"), runHeads(this.study))),
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
}

addView({ name: "runs", title: "Runs", key: "o", order: 10, View: Runs });
