// The data of the timeline: shares of time in bins, individual calls, waits, messages, and the critical path.

import { columnBlock, documentBlock } from "./data.js";
import { placeName } from "./format.js";
import { contains } from "./timeline_calls.js";

export class TimelineData {
  // `prefix`: prefix of the block names, on a page with several runs.
  static async open(model, prefix = "") {
    const head = await documentBlock(`${prefix}timeline`);
    const has = (name) => document.getElementById(`data-${prefix}timeline-${name}`) !== null;
    const names = ["places", "shares", "calls", "waits", "messages", "transfers", "tasks", "locks", ...["path", "counters", "samples"].filter(has)];
    const blocks = await Promise.all(names.map((name) => columnBlock(`${prefix}timeline-${name}`)));
    /** @type {Record<string, any>} */
    const found = Object.fromEntries(names.map((name, i) => [name, blocks[i]]));
    if (has("courses")) found.courses = await documentBlock(`${prefix}timeline-courses`);
    return new TimelineData(model, head, found);
  }

  /**
   * @param {import("./model.js").Model} model
   * @param {{ length: number, rows?: number, classes: [string, string][], levels: any[], kinds: string[], ended: boolean[], totals: Record<string, number> }} head
   * @param {Record<string, any>} blocks
   */
  constructor(model, head, { shares, places, calls, waits, messages, transfers, tasks, locks, path, courses, counters, samples }) {
    this.length = head.length;
    this.classes = head.classes;
    this.kinds = head.kinds;
    // For each kind, whether its waits last until their cause ends, not until it begins.
    this.ended = head.ended;
    this.totals = head.totals;
    this.places = places;
    this.streams = model.streams;
    this.calls = calls;
    this.waits = waits;
    /** The waits that are known of the whole run, if others come from a server. @type {Record<string, any> | undefined} */
    this.known = undefined;
    this.messages = messages;
    this.transfers = transfers;
    this.tasks = tasks;
    this.locks = locks;
    this.path = path ?? { location: [], from: [], to: [], position: [] };
    /** Samples of the call path, by location and time, if the trace has some; one of `every` so many. @type {Record<string, any> | undefined} */
    this.samples = samples;
    /** Counters in bins of time, if the trace has some. @type {{ counters: [string, string][], merged: number, rows: number, bins: number, width: number } | undefined} */
    this.courses = courses;
    this.counters = counters;
    this.model = model;
    // Locations are numbered by row here; those after the last row only record metrics. Files of whywait 0.1.0 have a
    // row for each location.
    this.count = head.rows ?? this.places.rank.length;
    /** @type {ArrayLike<number>} The indexes of the locations, which are the rows if each has one. */
    this.indexes = this.places.location ?? Uint32Array.from(this.places.rank, (_, index) => index);
    this.planes = head.classes.length;
    this.levels = head.levels.map((level, i) => ({ ...level, shares: shares[i], present: this.present(level, shares[i]) }));
    this.rowOf = firsts(this.calls.location, this.count);
    /** The window that calls from a server are of. @type {{ from: number, to: number, first: number, last: number } | null} */
    this.taken = null;
    this.threaded = Array.from(this.places.thread.subarray(0, this.count)).some((thread, row) => thread > 0 && !(this.indexes[row] in this.streams));
  }

  // Whether there is anything to show in an overlay.
  hasLayer(name) {
    const { path, messages, transfers, locks, tasks } = this;
    const items = { path: [path.location], messages: [messages.start, transfers.start], locks: [locks.begin], tasks: [tasks.start] };
    return !(name in items) || items[name].some((rows) => rows.length > 0);
  }

  // The classes that occur in a level.
  present({ rows, bins }, shares) {
    const planes = Array.from(this.classes.keys());
    return planes.filter((plane) => shares.subarray(plane * rows * bins, (plane + 1) * rows * bins).some((share) => share > 0));
  }

  name(location) {
    const { rank, thread } = this.places;
    if (rank[location] < 0) return `location ${this.indexes[location]}`;
    return placeName(rank[location], thread[location], this.streams[this.indexes[location]], this.namesThread(location));
  }

  // Whether a location is named by its thread, too: metrics are those of a process.
  namesThread(location) {
    return this.threaded && location < this.count;
  }

  // What a location does where nothing is drawn.
  get nothing() {
    return this.threaded ? "Idle thread, or outside the program" : "Outside the program";
  }

  // How many samples of a window each call path has itself, by position.
  sampled({ from, to, first, last }) {
    const counts = new Float64Array(this.model.positions);
    const { location, time, position, every } = this.samples ?? { location: [], every: [1] };
    for (let i = 0; i < location.length; i++) {
      if (location[i] >= first && location[i] < last && time[i] >= from && time[i] < to) counts[position[i]] += every[0];
    }
    return counts;
  }

  // Whether a row is a stream of a device.
  isStream(row) {
    return this.indexes[row] in this.streams;
  }

  // The short form, for narrow screens.
  shortName(location) {
    const { rank, thread } = this.places;
    const stream = this.streams[this.indexes[location]];
    if (stream !== undefined) return stream;
    return this.namesThread(location) && rank[location] >= 0 ? `rank ${rank[location]}.${thread[location]}` : this.name(location);
  }

  // The row of a thread, or -1.
  rowAt(rank, thread) {
    return Array.from({ length: this.count }, (_, row) => row).findIndex((row) => this.places.rank[row] === rank && this.places.thread[row] === thread);
  }

  // Calls that create or join the team of a parallel region have positions after those of all call paths, in the same
  // order.
  get callPaths() {
    return this.model.callpaths.region.length;
  }

  isManagement(position) {
    return position >= this.callPaths;
  }

  callName(position) {
    if (position < 0) return "";
    return this.isManagement(position) ? "fork and join" : this.model.callName(position + this.model.shift);
  }

  // The number of the function at the end of a call path, or -1.
  functionOf(position) {
    return this.model.callpaths.region[position] ?? -1;
  }

  callPath(position) {
    if (position < 0) return "";
    const path = this.model.callPath((position % this.callPaths) + this.model.shift);
    return [...path, ...(this.isManagement(position) ? ["fork and join"] : [])].join(" → ");
  }

  metric(kind) {
    return this.model.metrics[this.model.metricNumber.get(this.kinds[kind])];
  }

  // The level whose cells best match a pixel, given the time and the number of locations per pixel.
  level(time, locations) {
    const excess = ({ width, merged }) => Math.max(0, Math.log2(width / time)) + Math.max(0, Math.log2(merged / locations));
    return this.levels.reduce((best, level) => (excess(level) < excess(best) ? level : best));
  }

  // Shares (0..1) of all classes in columns of time on some locations: class p in column c is at [p * columns + c].
  shares(level, from, step, columns, first, last, into) {
    const { width, bins } = level;
    const rows = [Math.floor(first / level.merged), Math.min(level.rows, Math.ceil(last / level.merged))];
    into.fill(0);
    if (this.columns?.from !== from || this.columns.step !== step || this.columns.count !== columns || this.columns.width !== width) {
      const bounds = new Int32Array(2 * columns);
      for (let column = 0; column < columns; column++) {
        // There are no bins before the begin and after the end of the run.
        const begin = Math.floor((from + column * step) / width);
        const end = Math.max(begin + 1, Math.ceil((from + (column + 1) * step) / width));
        bounds[2 * column] = Math.min(bins, Math.max(0, begin));
        bounds[2 * column + 1] = Math.min(bins, Math.max(0, end));
      }
      this.columns = { from, step, count: columns, width, bounds };
    }
    const { bounds } = this.columns;
    for (const plane of level.present) {
      const to = plane * columns;
      for (let row = rows[0]; row < rows[1]; row++) {
        const at = (plane * level.rows + row) * bins;
        for (let column = 0; column < columns; column++) {
          const begin = bounds[2 * column];
          const end = bounds[2 * column + 1];
          let sum = 0;
          for (let bin = begin; bin < end; bin++) sum += level.shares[at + bin];
          into[to + column] += sum / Math.max(1, end - begin);
        }
      }
      const scale = 1 / (255 * Math.max(1, rows[1] - rows[0]));
      for (let column = 0; column < columns; column++) into[to + column] *= scale;
    }
    return into;
  }

  // Whether all calls of a window are known.
  covers(window) {
    return this.taken ? contains(this.taken, window) : this.calls.location.length > 0;
  }

  // Takes the calls of a window from a server.
  take(calls, window) {
    this.calls = calls;
    this.taken = window;
    this.rowOf = firsts(calls.location, this.count);
  }

  // Adds the waits of the same window to those that are known of the whole run.
  takeWaits(found) {
    this.known ??= this.waits;
    const { begin, location } = this.known;
    const there = new Set(Array.from(begin, (time, i) => `${location[i]} ${time.toFixed(9)}`));
    const more = Array.from(found.wait_begin.keys()).filter((i) => !there.has(`${found.wait_location[i]} ${found.wait_begin[i].toFixed(9)}`));
    this.waits = Object.fromEntries(Object.entries(this.known).map(([name, values]) =>
      [name, Float64Array.from([...values, ...more.map((i) => found[`wait_${name}`][i])])]));
  }

  // Whether all waits of a window are known.
  hasAllWaits(window) {
    return this.waits.begin.length >= this.totals.waits || (this.taken !== null && contains(this.taken, window));
  }

  // The innermost call of a location at a time, or -1.
  callAt(location, time) {
    const { enter, leave } = this.calls;
    let found = -1;
    for (let i = this.rowOf[location]; i < this.rowOf[location + 1] && enter[i] <= time; i++) {
      if (leave[i] >= time) found = i;
    }
    return found;
  }

  // The calls of a location that overlap a window, each with its depth.
  stackOf(location, from, to) {
    const { enter, leave } = this.calls;
    const open = [];
    const found = [];
    for (let i = this.rowOf[location]; i < this.rowOf[location + 1] && enter[i] <= to; i++) {
      // Calls are ordered by begin, callers before callees.
      while (open.length && (leave[open.at(-1)] <= enter[i] && leave[open.at(-1)] < leave[i])) open.pop();
      if (leave[i] >= from) found.push({ call: i, depth: open.length });
      open.push(i);
    }
    return found;
  }

  // For each call path whether it leads through one of some functions.
  within(functions) {
    const count = this.callPaths;
    const found = new Uint8Array(2 * count);
    for (let position = 0; position < count; position++) {
      const above = this.model.callTree.parent[position + this.model.shift] - this.model.shift;
      found[position] = Number(functions.has(this.functionOf(position)) || (above >= 0 && found[above] > 0));
    }
    found.copyWithin(count, 0, count);
    return found;
  }

  // The next call of some functions that begins after a time, wrapping around to the first; -1 if there is none.
  nextCall(functions, after) {
    const { enter, position } = this.calls;
    let [next, first] = [-1, -1];
    for (let i = 0; i < enter.length; i++) {
      if (!functions.has(this.functionOf(position[i]))) continue;
      if (first < 0 || enter[i] < enter[first]) first = i;
      if (enter[i] > after && (next < 0 || enter[i] < enter[next])) next = i;
    }
    return next >= 0 ? next : first;
  }

  // The shortest of the known waits of a location at a time, or -1.
  waitAt(location, time, slack = 0) {
    const { begin, end, location: where } = this.waits;
    let found = -1;
    for (let i = 0; i < begin.length; i++) {
      if (where[i] === location && begin[i] - slack <= time && end[i] + slack >= time) found = i;
    }
    return found;
  }
}

// For sorted numbers, the index at which each of 0..count-1 begins.
function firsts(numbers, count) {
  const found = new Uint32Array(count + 1);
  for (const number of numbers) found[number + 1]++;
  for (let i = 0; i < count; i++) found[i + 1] += found[i];
  return found;
}
