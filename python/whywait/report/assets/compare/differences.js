// The panes of a comparison: metrics, call paths, ranks.

import { fill, hiddenHeading, make } from "../dom.js";
import { quantity } from "../format.js";
import { nodeText, noteAddress, readNode } from "../link.js";
import { selection } from "../model.js";
import { resizable } from "../panes.js";
import { addView } from "../sections.js";
import { TREE_KEYS, TreeView, Trees } from "../tree.js";
import { difference, relative, signed } from "./model.js";

// A tree with the values of both runs, their difference, and the difference relative to the first run.
class DifferenceView extends TreeView {
  // `options` as for a tree, with pair(node, open) -> [first, second], unit(node), and heading(node), which tells whether
  // a node has no values, instead of value and text.
  constructor(title, options) {
    super(title, { value: (node, open) => (options.heading?.(node) ? null : difference(options.pair(node, open))), text: () => "", ...options });
    this.pair = options.pair;
    this.unit = options.unit;
  }

  build() {
    super.build();
    this.scroller.before(make("div", { class: "columns", "aria-hidden": "true" },
      ["A", "B", "B − A", "relative"].map((name) => make("span", {}, name))));
  }

  size(value) { return Math.abs(value); }

  // Descendants of a node may differ even if the node does not.
  isEmpty(node, whole) {
    if (whole) return false;
    for (let below = node; below < this.forest.end[node]; below++) if (this.value(below, true)) return false;
    return true;
  }

  row(row, at) {
    const line = super.row(row, at);
    const { node, open, value } = row;
    if (value === null) return line;
    const pair = this.pair(node, open);
    const unit = this.unit(node);
    const share = Math.abs(value) / (this.largest.get(this.group?.(node)) || 1);
    line.querySelector(".chip").style.background = value ? changeColor(value, share) : "transparent";
    line.lastChild.replaceWith(
      ...pair.map((one) => make("span", { class: one ? "value" : "value zero" }, quantity(one, unit))),
      make("span", { class: `value ${direction(value)}` }, signed(value, unit)),
      make("span", { class: `value ${direction(value)}` }, relative(pair)));
    return line;
  }
}

export function direction(value) {
  return value > 0 ? "more" : value < 0 ? "less" : "zero";
}

// Increases have the colors of waiting, decreases those of work: distinguishable with any color vision.
function changeColor(value, share) {
  return `color-mix(in oklab, var(--${value > 0 ? "waiting" : "work"}-0) ${Math.round(12 + 88 * share)}%, var(--card))`;
}

class Differences extends Trees {
  constructor(model) {
    super();
    this.model = model;
    this.metric = selection(model.metricNumber.get("time") ?? 0);
    this.call = selection(0);
    this.choices = model.groupChoices();
    this.groups = this.choices.findLast((groups) => groups <= 16);
    this.build();
  }

  build() {
    const { model } = this;
    this.metricView = new DifferenceView("Metrics", {
      forest: model.metricTree,
      label: (node) => model.metrics[node].label,
      hint: (node) => model.metrics[node].heading ? model.metrics[node].label : `${model.metrics[node].label} (${model.metrics[node].name})`,
      pair: (node, open) => model.totalPair(selection(node, open)),
      unit: (node) => model.metrics[node].unit,
      heading: (node) => model.metrics[node].heading,
      group: (node) => model.metricRoot(node),
      choose: (node, open) => { this.metric = selection(node, open); this.callView.refresh(); this.changed(); },
    });
    this.callView = new DifferenceView("Call tree", {
      forest: model.callTree,
      label: (node) => model.callName(node),
      hint: (node) => model.calls.name[node] ?? "All programs",
      pair: (node, open) => model.callPair(this.metric, selection(node, open)),
      unit: () => this.unit,
      choose: (node, open) => { this.call = selection(node, open); this.changed(); },
    });
    this.views = [this.metricView, this.callView];
    this.groupChoice = make("select", { "aria-label": "Groups of ranks", onchange: () => {
      this.groups = Number(this.groupChoice.value);
      this.changed();
    } }, this.choices.map((groups) => make("option", { value: groups }, groups === 1 ? "all ranks together" : `${groups} groups`)));
    this.crumbs = make("p", { class: "crumbs", "aria-live": "polite" });
    this.chart = make("div", { class: "pairs" });
    this.chartNote = make("p", { class: "note" });
    this.node = make("div", { class: "explorer differences" }, hiddenHeading("Differences"),
      make("div", { class: "toolbar" }, this.tools("equal", "Expand the largest differences below the selection (h)"), this.crumbs));
    const panes = resizable(make("div", { class: "panes" }), this.views.map((view) => view.node), { sizes: [1, 1], names: ["Metrics", "Call tree"] });
    const ranks = make("section", { class: "detail", "aria-label": "Ranks" },
      make("header", {}, make("h2", {}, "Ranks"), make("span", { class: "hint" }, "A above, B below"), this.groupChoice), this.chart, this.chartNote);
    resizable(this.node, [panes, ranks], { sizes: [1.55, 1], names: ["Trees", "Ranks"], across: false, before: "auto " });
  }

  get unit() {
    return this.model.metrics[this.metric.node].unit;
  }

  async changed() {
    const { model } = this;
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.groupChoice.value = String(this.groups);
    this.describe();
    noteAddress("differences", this.query());
    const pairs = await model.groupPairs(this.metric, this.call, this.groups);
    // The selection may have changed meanwhile.
    if (turn !== this.turn) return;
    this.showGroups(pairs);
    this.node.dispatchEvent(new CustomEvent("settled"));
  }

  describe() {
    const { model } = this;
    const metric = model.metrics[this.metric.node];
    const pair = model.callPair(this.metric, this.call);
    const change = difference(pair);
    const values = metric.heading ? [] : [`: ${quantity(pair[0], metric.unit)} → ${quantity(pair[1], metric.unit)}, `,
      make("b", { class: direction(change) }, change ? `${signed(change, metric.unit)} (${relative(pair)})` : "no difference")];
    fill(this.crumbs, make("b", {}, metric.label), this.metric.self && " (self)", " in ",
      make("b", {}, model.callName(this.call.node)), this.call.self && " (self)", values);
    fill(this.metricView.note, metric.text, metric.formula && make("small", {}, ` = ${metric.formula}`));
    const [inFirst, inSecond] = model.occursIn(this.call.node);
    fill(this.callView.note, model.calls.name[this.call.node] ?? "All programs of the runs together",
      inFirst && inSecond ? "" : ` · only in ${inFirst ? "A" : "B"}`);
  }

  // Two bars per group.
  showGroups([first, second]) {
    const { model, groups, unit } = this;
    const most = Math.max(...first, ...second, 0);
    const width = (value) => `${most ? (100 * Math.max(0, value)) / most : 0}%`;
    fill(this.chart, Array.from(first, (value, group) => {
      const pair = [value, second[group]];
      const change = difference(pair);
      return make("div", { class: "pair-row" },
        make("span", { class: "name" }, model.groupName(group, groups)),
        make("span", { class: "bars" }, make("i", { class: "first", style: { width: width(pair[0]) } }), make("i", { class: "second", style: { width: width(pair[1]) } })),
        pair.map((one) => make("span", { class: "value" }, quantity(one, unit))),
        make("span", { class: `value ${direction(change)}` }, signed(change, unit)),
        make("span", { class: `value ${direction(change)}` }, relative(pair)));
    }));
    const rounded = model.runs.some((run) => !run.resolution.exact) ? " Values by rank are rounded to four digits." : "";
    const merged = model.runs.some((run) => run.resolution.merged > 1) ? " Neighboring locations are put together, so a group may be off by a few ranks." : "";
    const single = this.model.rankNumbers.every(({ ranks }) => ranks.length === groups);
    fill(this.chartNote, groups === 1 ? "All ranks of each run together." : single ? "Each rank with the same rank of the other run."
      : `The ranks of each run in ${groups} groups of neighbors, compared group by group.`, rounded, merged);
  }

  select(metric, call) {
    this.metricView.reveal(metric.node, metric.self);
    this.metric = selection(metric.node, this.metricView.isOpen(metric.node));
    this.callView.reveal(call.node, call.self);
    this.call = selection(call.node, this.callView.isOpen(call.node));
    this.callView.refresh();
    this.changed();
  }

  query() {
    return {
      metric: nodeText(this.model.metrics[this.metric.node].name, this.metric.self),
      call: nodeText(this.call.node, this.call.self), groups: String(this.groups),
    };
  }

  reselect() {
    this.select(this.metric, this.call);
  }

  // The largest change, or time if there is none.
  start() {
    const [largest] = this.model.changes;
    return largest?.metric ? { metric: largest.metric, call: largest.call ?? 0 } : { metric: "time" };
  }

  restore(query) {
    const { model } = this;
    const metric = readNode(query.get("metric"));
    const call = readNode(query.get("call"));
    const node = Number(call.name ?? 0);
    if (this.choices.includes(Number(query.get("groups")))) this.groups = Number(query.get("groups"));
    this.select(selection(model.metricNumber.get(metric.name) ?? 0, metric.self),
      selection(node >= 0 && node < model.callTree.size ? node : 0, call.self));
  }
}

addView({
  name: "differences", title: "Differences", key: "e", order: 20, View: Differences,
  keys: [...TREE_KEYS, ["1 2", "go to metrics, call tree"], ["h", "follow the largest difference down"]],
});
