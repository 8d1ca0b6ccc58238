// Three linked panes: metrics, call paths, and the system tree (processes and threads).

import { BoxPlots, HeatMap } from "../charts.js";
import { hasBlock } from "../data.js";
import { choice, fill, hiddenHeading, make } from "../dom.js";
import { clock, percent, plural, quantity, seconds, withUnit } from "../format.js";
import { nodeText, noteAddress, readNode, timelineLink } from "../link.js";
import { selection } from "../model.js";
import { resizable } from "../panes.js";
import { addView } from "../sections.js";
import { sourceButton } from "../source.js";
import { exportButtons } from "../table_export.js";
import { TREE_KEYS, TreeView, Trees } from "../tree.js";

const SHOWN = [
  ["absolute", "Value", "Values in their unit"],
  ["root", "% of root", "Share of the root of the metric tree"],
  ["selection", "% of selection", "Share of the selection in the pane to the left"],
];
const INSTANCES = 200;
const BOXES = 8;
const OPENED = 100;

class Explorer extends Trees {
  constructor(model) {
    super();
    this.model = model;
    this.metric = selection(0);
    this.call = selection(0);
    // The call path that was chosen, also while it has nothing of the metric.
    this.wanted = 0;
    this.system = selection(0);
    this.show = "absolute";
    this.places = new Float64Array(model.placeCount);
    this.build();
  }

  build() {
    const { model } = this;
    this.metricView = new TreeView("Metrics", {
      forest: model.metricTree,
      label: (node) => model.metrics[node].label,
      hint: (node) => model.metrics[node].heading ? model.metrics[node].label : this.hint(model.metrics[node].label, this.metricView.value(node, false), model.metrics[node].unit, model.metrics[node].name),
      value: (node, open) => (model.metrics[node].heading ? null : model.total(selection(node, open))),
      keep: (node) => Boolean(model.metrics[node].heading),
      group: (node) => model.metricRoot(node),
      text: (value, node) => this.metricText(value, node),
      choose: (node, open) => this.chooseMetric(selection(node, open)),
    });
    this.callView = new TreeView("Call tree", {
      forest: model.callTree,
      label: (node) => model.callName(node),
      hint: (node) => this.hint(model.region(node)?.name ?? "All programs", this.callView.value(node, false)),
      value: (node, open) => model.callValue(this.metric, selection(node, open)),
      text: (value) => this.text(value, model.total(this.metric)),
      choose: (node, open) => this.chooseCall(selection(node, open)),
    });
    this.systemView = new TreeView("System", {
      forest: model.systemTree,
      label: (node) => this.systemName(node),
      hint: (node) => this.hint(this.systemName(node), this.systemView.value(node, false)),
      value: (node, open) => (open && model.system.place[node] < 0 ? null : this.systemValues?.[node] ?? 0),
      text: (value) => this.text(value, model.callValue(this.metric, this.call)),
      choose: (node, open) => this.chooseSystem(selection(node, open)),
    });
    this.views = [this.metricView, this.callView, this.systemView];
    this.openSystem();
    this.map = new HeatMap(model, (place) => {
      if (model.systemOfPlace[place] >= 0) this.systemView.reveal(model.systemOfPlace[place]);
      this.chooseSystem(selection(model.systemOfPlace[place], false));
    });
    this.boxes = new BoxPlots((call) => { this.callView.reveal(call.node, call.self); this.chooseCall(call); });
    this.list = make("ol", { class: "instances", tabindex: "0" });
    this.listNote = make("span", { class: "hint" });
    this.showChoice = choice("Values", SHOWN, this.show, (show) => { this.show = show; this.refreshAll(); });
    this.crumbs = make("p", { class: "crumbs", "aria-live": "polite" });
    const take = exportButtons("values", () => this.valueTable());
    this.node = make("div", { class: "explorer" }, hiddenHeading("Explorer"),
      make("div", { class: "toolbar" }, this.showChoice.node, this.tools("zeros", "Expand the largest values below the selection (h)"), take, this.crumbs));
    const waits = make("section", { class: "detail", "aria-label": "Wait states" },
      make("header", {}, make("h2", {}, "Longest waits"), this.listNote, exportButtons("waits", () => this.waitTable())), this.list);
    const panes = resizable(make("div", { class: "panes" }), this.views.map((view) => view.node),
      { sizes: [1, 1, 1], names: ["Metrics", "Call tree", "System"] });
    const details = resizable(make("div", { class: "details" }), [waits, this.boxes.node, this.map.node],
      { sizes: [1, 1, 1], names: ["Wait states", "Box plots", "Map"] });
    resizable(this.node, [panes, details], { sizes: [1.55, 1], names: ["Trees", "Details"], across: false, before: "auto " });
  }

  // The reference of shares.
  wholeName() {
    const { metrics, story } = this.model;
    const root = metrics[this.model.metricRoot(this.metric.node)];
    return root.name === "time" ? story.focus.phrase : root.label.toLowerCase();
  }

  // Expand down to processes, unless there are too many.
  openSystem() {
    const { children, size, roots } = this.model.systemTree;
    let level = roots;
    while (level.length && (size <= OPENED || level.length === 1)) {
      for (const node of level) if (children[node].length) this.systemView.expanded.add(node);
      level = level.flatMap((node) => children[node]);
    }
  }

  systemName(node) {
    const { name, place } = this.model.system;
    return name[node] || (place[node] >= 0 ? `location ${place[node]}` : "");
  }

  // Numbers --------------------------------------------------------------------------------------------------------

  get unit() {
    return this.model.metrics[this.metric.node].unit;
  }

  text(value, selected) {
    if (this.show === "root") return percent(value / this.model.rootTotal(this.metric)) || "0.0%";
    if (this.show === "selection") return percent(value / selected) || "0.0%";
    return quantity(value, this.unit);
  }

  // There is no pane to the left of metrics, so their shares refer to their own root.
  metricText(value, node) {
    if (this.show === "absolute") return quantity(value, this.model.metrics[node].unit);
    return percent(value / this.model.rootTotal(selection(node))) || "0.0%";
  }

  hint(name, value, unit = this.unit, unique = "") {
    return `${name}${unique ? ` (${unique})` : ""}\n${withUnit(value ?? 0, unit)} with all below`;
  }

  // Selections -----------------------------------------------------------------------------------------------------

  // Keeps the call path that was chosen; while nothing of the metric is there, shows where most of it is: at the nearest
  // ancestor with some of it, or below that.
  chooseMetric(metric) {
    this.metric = metric;
    const { model } = this;
    const { children, parent } = model.callTree;
    const value = (node, self = false) => model.callValue(metric, selection(node, self));
    const size = (node) => Math.abs(value(node));
    let node = this.wanted;
    if (!value(node)) {
      while (parent[node] >= 0 && !value(node)) node = parent[node];
      while (value(node) && children[node].length && !value(node, true)) {
        node = children[node].reduce((best, child) => (size(child) > size(best) ? child : best));
      }
    }
    if (node === this.call.node) this.callView.refresh();
    else this.callView.reveal(node);
    this.call = selection(node, this.callView.isOpen(node));
    this.placesChanged();
  }

  chooseCall(call) {
    this.call = call;
    this.wanted = call.node;
    this.placesChanged();
  }

  chooseSystem(system) {
    this.system = system;
    this.systemChanged();
  }

  refreshAll() {
    for (const view of this.views) view.refresh();
    this.systemChanged();
  }

  async placesChanged() {
    const { model } = this;
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.describe();
    this.remember();
    const values = await model.byPlace(this.metric, this.call);
    const boxes = await this.boxRows(values);
    // The selection may have changed meanwhile.
    if (turn !== this.turn) return;
    this.places = values;
    this.systemValues = model.bySystem(this.metric, values);
    this.systemView.refresh();
    const shown = boxes.map((box) => ({ ...box, values: model.shown.map((place) => box.values[place]) }));
    this.boxes.show(shown, (value) => quantity(value, this.unit), (i) => model.placeName(model.shown[i]));
    this.systemChanged();
    this.node.dispatchEvent(new CustomEvent("settled"));
  }

  // The selection itself, then its descendants with the largest exclusive values.
  async boxRows(values) {
    const { model } = this;
    const { own } = model.byCall(this.metric);
    const [first, end] = model.range(this.call);
    const rows = [{ label: `${model.callName(this.call.node)}${this.call.self ? " (self)" : ""}`, hint: "The selection", values, call: this.call }];
    const inside = [];
    for (let position = first; position < end; position++) {
      const node = position + model.shift;
      if (own[node] > 0 && !(this.call.self && node === this.call.node)) inside.push(node);
    }
    inside.sort((a, b) => own[b] - own[a]);
    const alone = inside.length === 1 && inside[0] === this.call.node;
    for (const node of alone ? [] : inside.slice(0, BOXES)) {
      const call = selection(node, model.callTree.children[node].length > 0);
      rows.push({
        label: `${model.callName(node)}${call.self ? " (self)" : ""}`, hint: model.callPath(node).join(" → "),
        values: await model.byPlace(this.metric, call), call,
      });
    }
    return rows;
  }

  systemChanged() {
    const { model } = this;
    this.describe();
    this.remember();
    const whole = model.systemTree.parent[this.system.node] < 0 && model.systemTree.roots.length === 1;
    this.map.show(this.places, (value) => quantity(value, this.unit), whole ? null : model.placesBelow(this.system.node));
    this.listWaits();
  }

  // Words ----------------------------------------------------------------------------------------------------------

  describe() {
    const { model } = this;
    const metric = model.metrics[this.metric.node];
    const value = model.callValue(this.metric, this.call);
    const mean = model.mean(this.metric, this.call);
    fill(this.crumbs, make("b", {}, metric.label), this.metric.self && " (self)", " in ",
      make("b", {}, model.callName(this.call.node)), this.call.self && " (self)", !metric.heading && `: ${withUnit(value, metric.unit)}`,
      mean !== null && `, mean ${withUnit(mean, metric.unit.replace(/ ?sec$/, ""))}`,
      metric.unit === "sec" && `, ${percent(value / model.rootTotal(this.metric)) || "0.0%"} of ${this.wholeName()}`);
    fill(this.metricView.note, metric.whole && make("b", {}, "Of the whole run, not only the focus. "), metric.text, metric.formula && make("small", {}, ` = ${metric.formula}`));
    const region = model.region(this.call.node);
    const file = region?.file ? ` · ${region.file}${region.line ? `:${region.line}` : ""}` : "";
    fill(this.callView.note, region ? `${region.name}${file}` : "All programs of the run together",
      region && sourceButton(model, model.regions.indexOf(region)));
    const { kind } = model.system;
    const system = this.system.node;
    const merged = model.resolution.merged > 1 ? ` · each line is ${model.resolution.merged} locations` : "";
    const rounded = model.resolution.exact ? "" : " · rounded to four digits";
    fill(this.systemView.note, `${this.systemName(system)}${kind[system] ? ` · ${kind[system]}` : ""}${merged}${rounded}`);
  }

  listWaits() {
    const { model } = this;
    const { rows, all, everywhere } = model.waits(this.metric, this.call, this.system, INSTANCES);
    const several = model.kindsOf(this.metric).length > 1;
    const i = model.instances;
    const who = (rank, thread) => (rank < 0 ? "a stream" : `rank ${rank}${model.threaded && thread >= 0 ? `, thread ${thread}` : ""}`);
    this.listNote.textContent = rows.length
      ? everywhere ? `${rows.length.toLocaleString("en-US")} of ${all.toLocaleString("en-US")}` : `${plural(rows.length, "worst one")} here`
      : "";
    if (!rows.length) {
      fill(this.list, make("li", { class: "none" }, model.kindsOf(this.metric).length && all
        ? "None of the longest waits is in the selected part of the machine." : "This selection has no individual waits. Choose a wait state, such as Late Sender."));
      return;
    }
    const longest = i.waiting[rows[0]];
    fill(this.list, rows.map((row) => {
      const cause = i.cause_rank[row] >= 0 || i.cause_place[row] >= 0;
      const callpath = i.position[row] + model.shift;
      const by = i.cause_position[row] >= 0 ? i.cause_position[row] + model.shift : -1;
      const more = make("dl", { hidden: true });
      const entry = make("li", {}, make("button", {
        type: "button", "aria-expanded": "false", onclick: (event) => {
          if (more.hidden && !more.childElementCount) fill(more, this.waitDetails(row, callpath, by, cause, who));
          more.hidden = !more.hidden;
          event.currentTarget.setAttribute("aria-expanded", String(!more.hidden));
        },
      },
        make("span", { class: "length" }, make("i", { style: { width: `${(100 * i.waiting[row]) / longest}%` } }), make("b", {}, seconds(i.waiting[row]))),
        make("span", {}, who(i.rank[row], i.thread[row])),
        make("span", { class: "when" }, clock(i.enter[row], this.model.facts.length ?? 1)),
        make("span", { class: "for" }, several && make("em", {}, model.metrics[model.kindMetrics[i.kind[row]]].label, " "),
          cause ? `for ${who(i.cause_rank[row], i.cause_thread[row])}${by >= 0 && by !== callpath ? `, ${model.callName(by)}` : ""}` : "")),
      more);
      return entry;
    }));
  }

  waitDetails(row, callpath, by, cause, who) {
    const { model } = this;
    const i = model.instances;
    const rows = [
      ["waits", `${seconds(i.waiting[row])} in ${model.callPath(callpath).join(" → ")}`],
      ["from", `${i.enter[row].toFixed(9)} s to ${i.leave[row].toFixed(9)} s (the whole call)`],
    ];
    if (cause) {
      const since = Number.isNaN(i.cause_time[row]) ? "" : ` from ${i.cause_time[row].toFixed(9)} s`;
      rows.push(["for", `${who(i.cause_rank[row], i.cause_thread[row])}${by >= 0 ? ` in ${model.callPath(by).join(" → ")}` : ""}${since}`]);
    }
    if (i.caused && !Number.isNaN(i.caused[row])) {
      rows.push(["because", `the other worked longer: ${seconds(i.direct[row])}; it waited itself: ${seconds(i.indirect[row])}`],
        ["effect", `${seconds(i.caused[row])} of waiting elsewhere later`]);
    }
    const jumps = [];
    if (i.place[row] >= 0) {
      jumps.push(make("button", { type: "button", onclick: () => this.go(callpath, i.place[row]) }, "Go to the waiter"));
    }
    if (by >= 0 && i.cause_place[row] >= 0) {
      const time = model.metricNumber.get("time");
      jumps.push(make("button", { type: "button", onclick: () => this.go(by, i.cause_place[row], time) }, "Go to the cause"));
    }
    if (hasBlock("timeline")) {
      jumps.push(make("a", { href: timelineLink(i.enter[row], i.leave[row], { wait: i.enter[row] + i.waiting[row] / 2, rank: i.rank[row], thread: i.thread[row] }) }, "On the timeline"));
    }
    return [rows.map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]), make("dd", { class: "jumps" }, jumps)];
  }

  // The selected metric at every call path with a non-zero value.
  valueTable() {
    const { model } = this;
    const { own, below } = model.byCall(this.metric);
    const { label, unit } = model.metrics[this.metric.node];
    const rows = Array.from(own, (_, node) => node).filter((node) => node >= model.shift && below[node] !== 0);
    return [["call path", `${label}, own (${unit})`, `${label}, with callees (${unit})`],
      ...rows.map((node) => [model.callPath(node).join(" / "), own[node], below[node]])];
  }

  waitTable() {
    const { model } = this;
    const { rows } = model.waits(this.metric, this.call, this.system, INSTANCES);
    const i = model.instances;
    const path = (position) => (position >= 0 ? model.callPath(position + model.shift).join(" / ") : "");
    return [["wait state", "rank", "thread", "call path", "enter (s)", "waiting (s)", "for rank", "for thread", "for call path"],
      ...rows.map((row) => [model.metrics[model.kindMetrics[i.kind[row]]].label, i.rank[row], i.thread[row], path(i.position[row]),
        i.enter[row], i.waiting[row], i.cause_rank[row] >= 0 ? i.cause_rank[row] : "", i.cause_rank[row] >= 0 ? i.cause_thread[row] : "", path(i.cause_position[row])])];
  }

  go(call, place, metric) {
    if (metric !== undefined) {
      this.metricView.reveal(metric);
      this.metric = selection(metric, this.metricView.isOpen(metric));
    }
    this.select(this.metric, selection(call, false), selection(this.model.systemOfPlace[place], false));
  }

  // Addresses ------------------------------------------------------------------------------------------------------

  select(metric, call, system) {
    Object.assign(this, { metric, call, system });
    this.metricView.reveal(metric.node, metric.self);
    this.callView.reveal(call.node, call.self);
    this.systemView.reveal(system.node, this.systemView.forest.parent[system.node] < 0 ? null : system.self);
    this.metric = selection(metric.node, this.metricView.isOpen(metric.node));
    this.call = selection(call.node, this.callView.isOpen(call.node));
    this.wanted = call.node;
    this.callView.refresh();
    this.placesChanged();
  }

  query() {
    const { model } = this;
    const { call, system } = this;
    const top = call.node < model.shift;
    return {
      metric: nodeText(model.metrics[this.metric.node].name, this.metric.self),
      ...(top ? {} : { call: nodeText(model.callpaths.id[call.node - model.shift], call.self) }),
      system: String(system.node),
      ...(this.show === "absolute" ? {} : { show: this.show }),
    };
  }

  remember() {
    noteAddress("explore", this.query());
  }

  reselect() {
    this.select(this.metric, this.call, this.system);
  }

  // The worst wait state, or time if there is none.
  start() {
    const { worst } = this.model.story;
    return worst ? { metric: worst.metric, call: worst.callpath_id } : { metric: "time" };
  }

  // What the address does not name is set to the root.
  restore(query) {
    const { model } = this;
    const metric = readNode(query.get("metric"));
    const call = readNode(query.get("call"));
    const system = Number(query.get("system") ?? 0);
    if (SHOWN.some(([key]) => key === query.get("show"))) {
      this.show = query.get("show");
      this.showChoice.show(this.show);
    }
    this.select(
      selection(model.metricNumber.get(metric.name) ?? 0, metric.self),
      selection(model.callNumber.get(Number(call.name)) ?? 0, call.self),
      selection(system >= 0 && system < model.systemTree.size ? system : 0),
    );
  }

  // Keys and colors ------------------------------------------------------------------------------------------------

  get actions() {
    const keys = SHOWN.map(([key]) => key);
    return {
      ...super.actions,
      "%": () => {
        this.show = keys[(keys.indexOf(this.show) + 1) % keys.length];
        this.showChoice.show(this.show);
        this.refreshAll();
      },
    };
  }

  repaint() {
    super.repaint();
    this.map.draw();
  }
}

addView({
  name: "explore", title: "Explorer", key: "e", order: 20, View: Explorer,
  keys: [...TREE_KEYS,
    ["1 2 3", "go to metrics, call tree, system"],
    ["h", "follow the largest value down"],
    ["%", "switch between values, shares of the root, and shares of the selection"],
  ],
});
