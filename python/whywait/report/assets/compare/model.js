// Two runs as one model: metrics and call paths matched by name, and the values of a selection in both runs.

import { documentBlock } from "../data.js";
import { quantity } from "../format.js";
import { Forest, Model, NONE, clean, known, selection } from "../model.js";

/**
 * What the block "compare" holds; whywait.report.html.compare makes it.
 *
 * @typedef {object} ComparisonMeta
 * @property {[string, string]} names of the runs
 * @property {string | null} simulated what was changed, if the second run is a simulation of the first
 * @property {string} focus the part of the time that efficiencies are of
 * @property {import("../model.js").Metric[]} metrics
 * @property {{ name: (string | null)[], short: (string | null)[], parent: number[], nodes: number[][] }} calls
 * @property {any[]} changes
 */

export class Comparison {
  static async open() {
    const [meta, ...runs] = await Promise.all([documentBlock("compare"), Model.open("a-"), Model.open("b-")]);
    return new Comparison(meta, runs);
  }

  /**
   * @param {ComparisonMeta} meta
   * @param {Model[]} runs
   */
  constructor(meta, runs) {
    this.names = meta.names;
    this.simulated = meta.simulated;
    this.focus = meta.focus;
    this.metrics = meta.metrics;
    this.calls = meta.calls;
    this.changes = meta.changes;
    this.runs = runs;
    this.metricNumber = new Map(meta.metrics.map((metric, i) => [metric.name, i]));
    this.metricTree = new Forest(meta.metrics.map((metric) => this.metricNumber.get(metric.parent) ?? -1));
    this.callTree = new Forest(meta.calls.parent);
    // For each run, the nodes of its own call tree that a common node represents.
    this.callsOf = runs.map((run, side) => {
      const found = Array.from({ length: this.callTree.size }, () => []);
      meta.calls.nodes[side].forEach((node, position) => found[node].push(position + run.shift));
      if (meta.calls.name[0] === null) found[0] = run.callTree.roots;
      return found;
    });
    this.rankNumbers = runs.map((run) => {
      const ranks = [...new Set(run.places.rank)].sort((a, b) => a - b);
      const number = new Map(ranks.map((rank, i) => [rank, i]));
      return { ranks, number: Array.from(run.places.rank, (rank) => number.get(rank)) };
    });
    this.cache = new Map();
  }

  // The root that the values of a metric are part of: counters below one heading have different units.
  metricRoot(node) {
    return [node, ...this.metricTree.above(node)].filter((one) => !this.metrics[one].heading).at(-1) ?? node;
  }

  // A selected metric in the terms of one run; null if the run does not have it.
  own(side, metric) {
    const node = this.runs[side].metricNumber.get(this.metrics[metric.node].name);
    return node === undefined ? null : selection(node, metric.self);
  }

  // How values of a metric combine, and what nothing counts.
  combination(metric) {
    return this.metrics[metric.node].maximum ? { combine: Math.max, nothing: NONE } : { combine: (a, b) => a + b, nothing: 0 };
  }

  // Values of a metric in both runs by node of the call tree, exclusive and inclusive.
  byCall(metric) {
    const key = `${metric.node}${metric.self ? "~" : ""}`;
    if (!this.cache.has(key)) {
      const { combine, nothing } = this.combination(metric);
      const own = this.runs.map((run, side) => {
        const sum = new Float64Array(this.callTree.size).fill(nothing);
        const named = this.own(side, metric);
        if (named) {
          const values = nothing ? run.maxima(named) : run.byCall(named).own;
          this.calls.nodes[side].forEach((node, position) => {
            sum[node] = combine(sum[node], values[position + run.shift]);
          });
        }
        return sum;
      });
      const below = own.map((values) => {
        const sum = values.slice();
        for (let i = sum.length - 1; i >= 0; i--) {
          const parent = this.callTree.parent[i];
          if (parent >= 0) sum[parent] = combine(sum[parent], sum[i]);
        }
        return sum;
      });
      this.cache.set(key, { own: own.map(known), below: below.map(known) });
    }
    return this.cache.get(key);
  }

  callPair(metric, call) {
    const values = this.byCall(metric);
    return (call.self ? values.own : values.below).map((of) => of[call.node] ?? 0);
  }

  totalPair(metric) {
    return this.runs.map((run, side) => {
      const known = this.own(side, metric);
      return known ? run.total(known) : 0;
    });
  }

  // Values of a selection in both runs by group of neighboring ranks.
  async groupPairs(metric, call, groups) {
    const { combine, nothing } = this.combination(metric);
    return Promise.all(this.runs.map(async (run, side) => {
      const sum = new Float64Array(groups).fill(nothing);
      const named = this.own(side, metric);
      if (!named) return known(sum);
      const { ranks, number } = this.rankNumbers[side];
      for (const node of this.callsOf[side][call.node]) {
        if (call.self && node < run.shift) continue;
        const values = await run.byPlace(named, selection(node, call.self));
        values.forEach((value, place) => {
          const group = Math.floor((number[place] * groups) / ranks.length);
          sum[group] = combine(sum[group], value);
        });
      }
      return known(sum);
    }));
  }

  // The ranks of a group in each run.
  groupName(group, groups) {
    const names = this.rankNumbers.map(({ ranks }) => {
      const own = ranks.filter((_, i) => Math.floor((i * groups) / ranks.length) === group);
      if (!own.length) return "none";
      return own.length > 1 ? `${own[0]}–${own.at(-1)}` : `${own[0]}`;
    });
    return names[0] === names[1] ? `rank${names[0].includes("–") ? "s" : ""} ${names[0]}` : `ranks ${names[0]} / ${names[1]}`;
  }

  // Selectable numbers of groups: powers of two from one group of all ranks up to one per rank.
  groupChoices() {
    const most = Math.min(...this.rankNumbers.map(({ ranks }) => ranks.length));
    const found = [];
    for (let groups = 1; groups < most; groups *= 2) found.push(groups);
    return [...found, Math.max(1, most)];
  }

  callName(node) {
    return this.calls.short[node] ?? "All programs";
  }

  callPath(node) {
    return [node, ...this.callTree.above(node)].filter((i) => this.calls.name[i] !== null).reverse().map((i) => this.callName(i));
  }

  // The runs in which a call path occurs.
  occursIn(node) {
    return this.callsOf.map((of) => of[node].length > 0);
  }
}

// A difference that is tiny compared with its sums is noise.
/** @param {number[]} values */
export function difference([first, second]) {
  return clean(second - first, Math.max(Math.abs(first), Math.abs(second)));
}

export function signed(value, unit) {
  return value ? `${value > 0 ? "+" : "−"}${quantity(Math.abs(value), unit)}` : quantity(0, unit);
}

/** @param {number[]} values */
export function relative([first, second]) {
  const change = difference([first, second]);
  if (!change) return "=";
  if (!first) return "new";
  if (!second) return "gone";
  const share = change / Math.abs(first);
  if (Math.abs(share) >= 10) return `×${(second / first).toFixed(0)}`;
  return Math.abs(share) < 0.0005 ? "<0.1%" : `${share > 0 ? "+" : "−"}${(100 * Math.abs(share)).toFixed(1)}%`;
}
