// The front page of a comparison: what got better, what got worse, by how much and where.

import { card, make, tip } from "../dom.js";
import { percent, plural, seconds } from "../format.js";
import { address } from "../link.js";
import { selection } from "../model.js";
import { afterFirst, heads } from "../ranking.js";
import { addView } from "../sections.js";
import { direction } from "./differences.js";
import { difference, relative, signed } from "./model.js";

const SENTENCES = 4;
// Even identical runs differ by this much.
const SAME = 0.01;
const EFFICIENCY_DEPTH = { parallel_efficiency: 0, load_balance: 1, communication_efficiency: 1, serialization: 2, transfer: 2 };

export class Changes {
  constructor(model) {
    this.model = model;
    this.node = make("div", { class: "overview" }, this.headline(), this.sides(), this.sentences(), this.table(),
      make("div", { class: "pair" }, this.efficiencies(), this.onlyOne()), this.about());
  }

  link(metric, call) {
    return address("differences", { metric, ...(call === undefined ? {} : { call }) });
  }

  headline() {
    const { runs, names } = this.model;
    const lengths = runs.map((run) => run.story.length);
    const whole = runs.map((run) => run.facts.length ?? 0);
    const times = runs.map((run) => (run.metricNumber.has("time") ? run.total(selection(run.metricNumber.get("time"))) : 0));
    const change = difference(lengths);
    const share = Math.abs(change) / lengths[0];
    const verdict = !lengths[0] || share < SAME ? ["", "B takes about as long as A", ""]
      : change < 0 ? [percent(share), " less time in B than in A", "less"] : [percent(share), " more time in B than in A", "more"];
    const same = runs[0].facts.processes === runs[1].facts.processes;
    return make("section", { class: "headline" },
      make("div", {}, make("h1", {}, "A ", make("span", { class: "soft" }, names[0]), " and B ", make("span", { class: "soft" }, names[1])),
        this.model.simulated && make("p", {}, "Simulated: ", make("b", {}, this.model.simulated)),
        make("p", {}, runs.map((run, side) => `${"AB"[side]}: ${plural(run.facts.processes ?? 0, "rank")}, ${plural(run.facts.events ?? 0, "event")}`).join(" · "),
          same ? "" : ". Sums over all ranks are compared, so more ranks may have more of everything.")),
      make("p", { class: "verdict" }, verdict[2] ? make("b", { class: verdict[2] }, verdict[0]) : "", make("span", {}, verdict[1], `: ${seconds(lengths[1])} instead of ${seconds(lengths[0])} (${this.model.focus}). `,
          whole.some((length, side) => length > lengths[side]) ? `Whole runs: ${seconds(whole[0])} → ${seconds(whole[1])}. ` : ""),
        make("br"), make("span", {}, `All ranks together: ${seconds(times[0])} → ${seconds(times[1])}, including waiting `,
          ...[0, 1].flatMap((side) => [side ? " → " : "", seconds(runs[side].story.waiting.total), ` (${percent(runs[side].story.waiting.share) || "0.0%"})`]), ".")));
  }

  // Both runs as bars on one scale; a part has the same color in both.
  sides() {
    const { runs, names } = this.model;
    const wholes = runs.map((run) => run.story.parts.reduce((sum, part) => sum + part.value, 0));
    const most = Math.max(...wholes);
    if (!most) return null;
    const colors = new Map();
    const painted = runs.map((run) => run.story.parts.map((part) => {
      if (!colors.has(part.label)) colors.set(part.label, { family: part.family, color: `var(--${part.family}-${part.shade})` });
      return { ...part, ...colors.get(part.label) };
    }));
    const explain = (part, whole) => (event) => tip.show(event, make("b", {}, part.label), make("br"), `${seconds(part.value)}, ${percent(part.value / whole)}`);
    const families = ["work", "devices", "io", "threads", "communication", "overhead", "idle", "waiting"];
    const legend = [...colors].sort(([, a], [, b]) => families.indexOf(a.family) - families.indexOf(b.family));
    return card("Where the time went", "The time of all ranks together, both runs on one scale. Waiting is hatched.",
      runs.map((_run, side) => make("div", { class: "side" }, make("b", {}, "AB"[side]), make("span", { class: "name", title: names[side] }, names[side]),
        make("div", { class: "stack", role: "img", "aria-label": `${"AB"[side]}: ${painted[side].map((part) => `${part.label} ${seconds(part.value)}`).join(", ")}`,
          style: { width: `${(100 * wholes[side]) / most}%` } },
          painted[side].map((part) => make("a", {
            class: `part ${part.family}`, href: this.link(part.metric), style: { "flex-grow": part.value / wholes[side], "--color": part.color },
            onmousemove: explain(part, wholes[side]), onmouseleave: () => tip.hide(), "aria-label": `${part.label} ${seconds(part.value)}`,
          }, part.value / most > 0.09 && make("span", {}, part.label)))),
        make("span", { class: "value" }, seconds(wholes[side])))),
      make("p", { class: "swatches" }, legend.map(([label, { family, color }]) => make("span", {}, make("i", { class: `swatch ${family}`, style: { "--color": color } }), label))));
  }

  sentences() {
    const told = this.model.changes.filter((change) => change.metric);
    const column = (title, kind, chosen) => make("div", {}, make("h3", { class: kind }, title),
      chosen.length ? make("ul", {}, chosen.slice(0, SENTENCES).map((change) => make("li", {}, this.sentence(change)))) : make("p", { class: "none" }, "Nothing significant."));
    return make("section", { class: "card" }, make("h2", {}, "What changed"), make("div", { class: "pair better" },
      column("Less in B", "less", told.filter(({ difference: change }) => change < 0)),
      column("More in B", "more", told.filter(({ difference: change }) => change > 0))));
  }

  sentence(change) {
    const what = change.family === "waiting" ? `waiting: ${change.label}` : change.label.toLowerCase() === "computation" ? "computation" : `time in ${change.label}`;
    const less = change.difference < 0;
    const how = !change.first ? "A has none" : !change.second ? "B has none" : `${relative([change.first, change.second])}`;
    const where = change.callpath?.length && Math.abs(change.there) > 0.1 * Math.abs(change.difference);
    const part = Math.abs(change.there) > 0.995 * Math.abs(change.difference) ? "all of it" : `${seconds(Math.abs(change.there))} of it`;
    return [make("b", {}, seconds(Math.abs(change.difference))), ` ${less ? "less" : "more"} ${what} (${how})`,
      where && [", ", Math.abs(change.there) > 1.005 * Math.abs(change.difference) ? `${seconds(Math.abs(change.there))} ${less ? "less" : "more"}` : part, " in ",
        make("a", { class: "path", href: this.link(change.metric, change.call), title: change.callpath.join(" → ") }, make("code", {}, this.model.callName(change.call)))], "."];
  }

  // Changes of the parts of time; they add up to the total change.
  table() {
    const { changes } = this.model;
    if (!changes.length) return null;
    const most = Math.max(...changes.map((change) => Math.abs(change.difference))) || 1;
    const sum = ["first", "second", "difference"].map((name) => changes.reduce((total, change) => total + change[name], 0));
    const row = (label, values, change, bar, where) => make("tr", {}, make("td", {}, label), values.map((value) => make("td", {}, seconds(value))),
      make("td", { class: direction(change) }, signed(change, "sec")), make("td", { class: direction(change) }, relative(values)), make("td", { class: "diverging" }, bar), make("td", {}, where));
    return card("Where the difference comes from", "Every second of a run is counted in exactly one row, so the differences add up to the total.",
      make("table", { class: "ranking changes" }, heads(["Part of the time", "A", "B", "B − A", "relative", "less · more", "most in"]),
        make("tbody", {}, changes.map((change) => row(
          change.metric ? make("a", { href: this.link(change.metric) }, change.label) : change.label, [change.first, change.second], change.difference,
          make("i", { class: direction(change.difference), style: { width: `${(50 * Math.abs(change.difference)) / most}%` } }),
          change.callpath?.length ? make("a", { class: "path", href: this.link(change.metric, change.call), title: change.callpath.join(" → ") }, this.model.callName(change.call)) : ""))),
        make("tfoot", {}, row("Time", sum.slice(0, 2), difference(sum), "", ""))));
  }

  efficiencies() {
    const both = this.model.runs.map((run) => new Map((run.story.efficiencies ?? []).map((one) => [one.name, one])));
    const names = Object.keys(EFFICIENCY_DEPTH).filter((name) => both.some((of) => of.get(name)?.value != null));
    if (!names.length) return null;
    const text = (one) => (one?.value == null ? "–" : one.value.toFixed(3));
    return card("Efficiencies", `Of ${this.model.focus}. 1 is best, above 0.8 is good. Each is the product of those indented below it.`,
      make("table", { class: "ranking" }, heads(["", "A", "B", "B − A"], afterFirst),
        make("tbody", {}, names.map((name) => {
          const pair = both.map((of) => of.get(name));
          const change = pair.every((one) => one?.value != null) ? Number((pair[1].value - pair[0].value).toFixed(3)) : null;
          return make("tr", { title: (pair[0] ?? pair[1]).formula }, make("td", { style: { "padding-left": `${22 * EFFICIENCY_DEPTH[name]}px` } }, (pair[0] ?? pair[1]).display_name),
            pair.map((one) => make("td", { class: "number-of" }, text(one))),
            // For efficiencies, more is better.
            make("td", { class: `number-of ${change === null ? "" : direction(-change)}` }, change === null ? "" : change === 0 ? "=" : `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(3)}`));
        }))));
  }

  onlyOne() {
    const { model } = this;
    const time = model.metricNumber.get("time");
    const sides = [0, 1].map((side) => {
      const found = [];
      for (let node = 0; node < model.callTree.size; node++) {
        const parent = model.callTree.parent[node];
        const alone = (at) => model.occursIn(at)[side] && !model.occursIn(at)[1 - side];
        if (model.calls.name[node] !== null && alone(node) && (parent < 0 || !alone(parent))) {
          found.push({ node, value: time === undefined ? 0 : model.byCall(selection(time)).below[side][node] });
        }
      }
      return found.sort((a, b) => b.value - a.value);
    });
    if (!sides[0].length && !sides[1].length) return card("Only in one run", "Nothing: both runs have the same call paths.");
    return card("Only in one run", "These call paths, with everything below them, have no counterpart of the same name in the other run.",
      sides.map((found, side) => found.length > 0 && make("div", { class: "only" }, make("h3", {}, `Only in ${"AB"[side]}`, make("small", {}, ` ${plural(found.length, "call path")}`)),
        make("ul", {}, found.slice(0, 6).map(({ node, value }) => make("li", {}, make("a", { class: "path", href: this.link("time", node), title: model.callPath(node).join(" → ") },
          model.callPath(node).slice(-2).join(" → ")), ` ${seconds(value)}`))))));
  }

  about() {
    const { runs } = this.model;
    return make("footer", {}, `whywait ${runs[1].whywait} · A: ${runs[0].run.path}${this.model.simulated ? "" : ` · B: ${runs[1].run.path}`} · All numbers are also in severities.parquet.`);
  }
}

addView({ name: "changes", title: "What changed", key: "o", order: 10, View: Changes });
