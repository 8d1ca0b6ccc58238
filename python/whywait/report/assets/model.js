// The three trees, and the values of any selection of metric, call path and place.

import { columnBlock, documentBlock } from "./data.js";
import { placeName } from "./format.js";

// A tree in pre-order: the subtree of node i is i..end[i]-1.
export class Forest {
  constructor(parents) {
    this.parent = parents;
    this.size = parents.length;
    this.children = Array.from(parents, () => []);
    this.end = new Uint32Array(this.size);
    this.roots = [];
    parents.forEach((parent, i) => (parent < 0 ? this.roots : this.children[parent]).push(i));
    for (let i = this.size - 1; i >= 0; i--) {
      const below = this.children[i];
      this.end[i] = below.length ? this.end[below[below.length - 1]] : i + 1;
    }
  }

  above(i) {
    const found = [];
    for (let at = this.parent[i]; at >= 0; at = this.parent[at]) found.push(at);
    return found;
  }
}

// A selected node; `self` excludes its descendants, as an expanded node does.
export const selection = (node, self = false) => ({ node, self });

/**
 * @typedef {object} Metric
 * @property {string} name
 * @property {string} label
 * @property {string | null} parent
 * @property {string} unit
 * @property {string} text
 * @property {boolean} [whole] its values are of the whole run, where others are of the focus
 * @property {string | null} formula
 * @property {[number, number][]} [terms] stored metrics, each with the number of its factors
 * @property {boolean} [maximum] values combine to the largest one, not to a sum
 * @property {boolean} [heading] without values
 * @property {number | null} [seconds] of a level, the stored metric with the time in which it is known
 */

/**
 * What the block "meta" holds; whywait.report.html.model makes it.
 *
 * @typedef {object} Meta
 * @property {string} whywait version
 * @property {{ name: string, path: string, program: string | null }} run
 * @property {Record<string, any>} facts
 * @property {string[]} stored
 * @property {Metric[]} metrics
 * @property {{ name: string, short: string, file: string, line: number | null }[]} regions
 * @property {{ id: number[], parent: number[], region: number[] }} callpaths
 * @property {{ name: string[], kind: string[], parent: number[], place: number[] }} system
 * @property {any[]} topologies
 * @property {Record<number, string>} streams
 * @property {number[]} left_out places that only record counters, or whose events are gone
 * @property {{ merged: number, exact: boolean }} resolution
 * @property {string[]} kinds
 */

// The maximum of nothing.
export const NONE = -Infinity;

export class Model {
  // `prefix`: prefix of the block names, on a page with several runs.
  static async open(prefix = "") {
    const [meta, story, places, factors, totals, instances] = await Promise.all([
      documentBlock(`${prefix}meta`), documentBlock(`${prefix}story`), columnBlock(`${prefix}places`), columnBlock(`${prefix}factors`),
      columnBlock(`${prefix}totals`), columnBlock(`${prefix}instances`),
    ]);
    return new Model(meta, story, places, factors.factor, totals, instances, prefix);
  }

  /**
   * @param {Meta} meta
   * @param {any} story what the front page tells
   * @param {Record<string, any>} places
   * @param {any} factors
   * @param {Record<string, any>} totals
   * @param {Record<string, any>} instances
   * @param {string} prefix
   */
  constructor(meta, story, places, factors, totals, instances, prefix) {
    this.whywait = meta.whywait;
    this.run = meta.run;
    this.facts = meta.facts;
    this.stored = meta.stored;
    this.metrics = meta.metrics;
    this.regions = meta.regions;
    this.callpaths = meta.callpaths;
    this.system = meta.system;
    this.topologies = meta.topologies;
    this.streams = meta.streams;
    this.resolution = meta.resolution;
    this.kinds = meta.kinds;
    this.story = story;
    /** @type {boolean | undefined} */
    this.threadedKnown = undefined;
    this.prefix = prefix;
    this.places = places;
    this.instances = instances;
    const number = new Map(meta.metrics.map((metric, i) => [metric.name, i]));
    this.metricNumber = number;
    this.metricTree = new Forest(meta.metrics.map((metric) => number.get(metric.parent) ?? -1));

    // Several programs get one root above them, so that all of them can be selected together.
    const above = meta.callpaths.parent;
    this.oneProgram = above.filter((parent) => parent < 0).length === 1;
    this.shift = this.oneProgram ? 0 : 1;
    this.callTree = new Forest(this.oneProgram ? above : [-1, ...above.map((parent) => parent + 1)]);
    this.positions = above.length;
    this.callNumber = new Map(meta.callpaths.id.map((id, position) => [id, position + this.shift]));

    this.systemTree = new Forest(meta.system.parent);
    this.placeCount = places.rank.length;
    // The places that maps and distributions show.
    const leftOut = new Set(meta.left_out);
    this.shown = Array.from({ length: this.placeCount }, (_, place) => place).filter((place) => !leftOut.has(place));
    if (!this.shown.length) this.shown = [...leftOut];
    this.systemOfPlace = new Int32Array(this.placeCount).fill(-1);
    meta.system.place.forEach((place, row) => { if (place >= 0) this.systemOfPlace[place] = row; });

    this.factors = factors;
    this.storedTotals = meta.stored.map((name) => {
      return new Float64Array(this.positions).fill(meta.metrics[number.get(name)]?.maximum ? NONE : 0);
    });
    totals.metric.forEach((metric, i) => { this.storedTotals[metric][totals.position[i]] = totals.value[i]; });
    this.termCache = new Map();
    this.valueCache = new Map();
    this.cellCache = new Map();
    this.kindMetrics = meta.kinds.map((kind) => number.get(kind) ?? -1);
  }

  // Metrics --------------------------------------------------------------------------------------------------------

  // A metric as a linear combination of stored metrics: one factor for each.
  terms(metric) {
    const key = `${metric.node}${metric.self ? "~" : ""}`;
    if (!this.termCache.has(key)) {
      const total = new Map();
      const add = (node, sign) => {
        for (const [stored, vector] of this.metrics[node].terms) {
          if (!total.has(stored)) total.set(stored, new Float64Array(this.positions));
          const sum = total.get(stored);
          const from = vector * this.positions;
          for (let i = 0; i < sum.length; i++) sum[i] += sign * this.factors[from + i];
        }
      };
      add(metric.node, 1);
      if (metric.self && !this.metrics[metric.node].heading) for (const child of this.metricTree.children[metric.node]) add(child, -1);
      this.termCache.set(key, total);
    }
    return this.termCache.get(key);
  }

  // Values of a metric by node of the call tree: `own` is exclusive, `below` inclusive.
  byCall(metric) {
    const key = `${metric.node}${metric.self ? "~" : ""}`;
    if (!this.valueCache.has(key) && this.metrics[metric.node].maximum) this.valueCache.set(key, this.largestByCall(metric));
    if (!this.valueCache.has(key)) {
      const own = new Float64Array(this.callTree.size);
      for (const [stored, factor] of this.terms(metric)) {
        const totals = this.storedTotals[stored];
        for (let i = 0; i < factor.length; i++) own[i + this.shift] += factor[i] * totals[i];
      }
      const scale = own.reduce((sum, value) => sum + Math.abs(value), 0);
      for (let i = 0; i < own.length; i++) own[i] = clean(own[i], this.scale(metric.node, scale));
      const below = own.slice();
      for (let i = below.length - 1; i >= 0; i--) {
        const parent = this.callTree.parent[i];
        if (parent >= 0) below[parent] += below[i];
      }
      this.valueCache.set(key, { own, below });
    }
    return this.valueCache.get(key);
  }

  // The mean of a level at a call path; null for other metrics, and where it is unknown.
  mean(metric, call) {
    const { seconds } = this.metrics[metric.node];
    if (seconds === null || seconds === undefined) return null;
    const [first, end] = this.range(call);
    const known = this.storedTotals[seconds].subarray(first, end).reduce((sum, value) => sum + value, 0);
    return known > 0 ? this.callValue(metric, call) / known : null;
  }

  // Exclusive values of a maximum by node of the call tree, NONE where there is none.
  maxima(metric) {
    const own = new Float64Array(this.callTree.size).fill(NONE);
    for (const [stored] of this.metrics[metric.node].terms) own.set(this.storedTotals[stored], this.shift);
    return own;
  }

  largestByCall(metric) {
    const own = this.maxima(metric);
    const below = own.slice();
    for (let i = below.length - 1; i >= 0; i--) {
      const parent = this.callTree.parent[i];
      if (parent >= 0) below[parent] = Math.max(below[parent], below[i]);
    }
    return { own: known(own), below: known(below) };
  }

  // Differences can leave rounding noise, which is tiny compared with the stored values that cancelled out.
  scale(node, fallback) {
    let largest = fallback;
    for (const [stored] of this.metrics[node].terms) {
      largest = Math.max(largest, this.storedTotals[stored].reduce((sum, value) => sum + Math.abs(value), 0));
    }
    return largest;
  }

  total(metric) {
    const { below } = this.byCall(metric);
    return this.callTree.roots.reduce((sum, root) => sum + below[root], 0);
  }

  callValue(metric, call) {
    const values = this.byCall(metric);
    return (call.self ? values.own : values.below)[call.node] ?? 0;
  }

  rootTotal(metric) {
    return this.total(selection(this.metricRoot(metric.node)));
  }

  // The root that the values of a metric are part of: counters below one heading have different units.
  metricRoot(node) {
    return [node, ...this.metricTree.above(node)].filter((one) => !this.metrics[one].heading).at(-1) ?? node;
  }

  // Call paths -----------------------------------------------------------------------------------------------------

  region(call) {
    return call < this.shift ? null : this.regions[this.callpaths.region[call - this.shift]];
  }

  callName(call) {
    return this.region(call)?.short ?? "All programs";
  }

  callPath(call) {
    return [call, ...this.callTree.above(call)].filter((i) => i >= this.shift).reverse().map((i) => this.callName(i));
  }

  // The range of positions that a selected call path covers; the end is exclusive.
  range(call) {
    const first = Math.max(0, call.node - this.shift);
    if (call.self) return call.node < this.shift ? [0, 0] : [first, first + 1];
    return [first, this.callTree.end[call.node] - this.shift];
  }

  // Places ---------------------------------------------------------------------------------------------------------

  placeName(place) {
    const { rank, thread, last } = this.places;
    if (place < 0) return "unknown";
    if (rank[place] !== last[place]) return `ranks ${rank[place]}–${last[place]}`;
    if (rank[place] < 0) return this.system.name[this.systemOfPlace[place]] ?? `location ${place}`;
    return placeName(rank[place], thread[place], this.resolution.merged > 1 ? undefined : this.streams[place], this.threaded);
  }

  // A thread or stream of a rank.
  threadName(rank, thread) {
    return placeName(rank, thread ?? 0, this.streamOf(rank, thread), this.threaded);
  }

  // The short form, as in the timeline.
  shortPlaceName(rank, thread) {
    return this.streamOf(rank, thread) ?? `rank ${rank}${thread ? `.${thread}` : ""}`;
  }

  streamOf(rank, thread) {
    const place = this.places.rank.findIndex((one, i) => one === rank && this.places.thread[i] === (thread ?? 0));
    return this.resolution.merged > 1 ? undefined : this.streams[place];
  }

  get hasStreams() {
    return this.shown.some((place) => place in this.streams);
  }

  get threaded() {
    // Streams have names of their own.
    const isStream = (place) => this.resolution.merged === 1 && place in this.streams;
    this.threadedKnown ??= this.shown.some((place) => this.places.thread[place] > 0 && !isStream(place));
    return this.threadedKnown;
  }

  // What locations are called.
  get placeWord() {
    return this.hasStreams ? "thread or stream" : this.threaded ? "thread" : this.story.running === this.facts.processes ? "rank" : "location";
  }

  // Places below a node of the system tree.
  placesBelow(node) {
    const found = [];
    for (let row = node; row < this.systemTree.end[node]; row++) {
      if (this.system.place[row] >= 0) found.push(this.system.place[row]);
    }
    return found;
  }

  async cells(stored) {
    if (!this.cellCache.has(stored)) this.cellCache.set(stored, this.readCells(stored));
    return this.cellCache.get(stored);
  }

  async readCells(stored) {
    const { position, count, place, value } = await columnBlock(`${this.prefix}cells-${stored}`);
    const rows = [];
    for (let row = 0, at = 0; row < position.length; row++) {
      const end = at + count[row];
      for (let i = at + 1; i < end; i++) place[i] += place[i - 1];
      rows.push({ position: position[row], start: at, end });
      at = end;
    }
    return { rows, place, value };
  }

  // Values of a metric at a call path, by place.
  async byPlace(metric, call) {
    const [first, end] = this.range(call);
    const { maximum } = this.metrics[metric.node];
    const sum = new Float64Array(this.placeCount).fill(maximum ? NONE : 0);
    let scale = 0;
    for (const [stored, factor] of this.terms(metric)) {
      let needed = false;
      for (let i = first; i < end && !needed; i++) needed = factor[i] !== 0;
      if (!needed) continue;
      const { rows, place, value } = await this.cells(stored);
      for (const { position, start, end: stop } of rows) {
        if (position < first || position >= end || factor[position] === 0) continue;
        const times = factor[position];
        if (maximum) for (let i = start; i < stop; i++) sum[place[i]] = Math.max(sum[place[i]], value[i]);
        else for (let i = start; i < stop; i++) {
          sum[place[i]] += times * value[i];
          if (value[i] > scale) scale = value[i];
        }
      }
    }
    if (maximum) return known(sum);
    const floor = this.resolution.exact ? scale : scale * 1e8;
    for (let i = 0; i < sum.length; i++) sum[i] = clean(sum[i], floor);
    return sum;
  }

  // Values of a metric by node of the system tree, from those by place.
  bySystem(metric, values) {
    const { place } = this.system;
    const { maximum } = this.metrics[metric.node];
    const found = new Float64Array(this.systemTree.size).fill(maximum ? NONE : 0);
    place.forEach((one, row) => { if (one >= 0) found[row] = values[one]; });
    for (let row = found.length - 1; row >= 0; row--) {
      const parent = this.systemTree.parent[row];
      if (parent >= 0) found[parent] = maximum ? Math.max(found[parent], found[row]) : found[parent] + found[row];
    }
    return known(found);
  }

  // Wait states ----------------------------------------------------------------------------------------------------

  // The kinds of wait states of a metric: its own, or the topmost ones below it.
  kindsOf(metric) {
    const node = metric.node;
    const own = this.kindMetrics.indexOf(node);
    if (own >= 0) return [own];
    const inside = this.kindMetrics
      .map((number, kind) => ({ number, kind }))
      .filter(({ number }) => number > node && number < this.metricTree.end[node]);
    const numbers = new Set(inside.map(({ number }) => number));
    return inside
      .filter(({ number }) => !this.metricTree.above(number).some((above) => numbers.has(above)))
      .map(({ kind }) => kind);
  }

  // The worst wait states of a selection, longest first, and the number of all at its call paths.
  waits(metric, call, system, limit) {
    const kinds = new Set(this.kindsOf(metric));
    const [first, end] = this.range(call);
    const { kind, position, place, count_kind, count_position, count } = this.instances;
    const everywhere = this.systemTree.parent[system.node] < 0 && this.systemTree.roots.length === 1;
    const places = everywhere ? null : new Set(this.placesBelow(system.node));
    const rows = [];
    for (let i = 0; i < kind.length && rows.length < limit; i++) {
      if (kinds.has(kind[i]) && position[i] >= first && position[i] < end && (!places || places.has(place[i]))) {
        rows.push(i);
      }
    }
    let all = 0;
    for (let i = 0; i < count.length; i++) {
      if (kinds.has(count_kind[i]) && count_position[i] >= first && count_position[i] < end) all += count[i];
    }
    return { rows, all, everywhere };
  }
}

// Replaces missing maxima.
export function known(values) {
  return values.map((value) => (value === NONE ? 0 : value));
}

export function clean(value, scale) {
  return Math.abs(value) < 1e-12 * scale ? 0 : value;
}
