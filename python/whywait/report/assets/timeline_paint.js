// Draws the timeline: locations from top to bottom, time to the right. Zoomed out, it shows the shares of classes in
// bins of time; zoomed in, individual calls, waits and arrows.

import { fitCanvas } from "./charts.js";
import { css } from "./color.js";
import { make } from "./dom.js";
import { counted, plural, seconds } from "./format.js";
import { ARROWS, paintArrow, paintArrows } from "./timeline_arrows.js";
import { nameKernels } from "./timeline_kernels.js";
import { paintLocks } from "./timeline_locks.js";

export const GUTTER = 84;
export const AXIS = 22;
const STRIP = 46;
// Rows of at least this height show stacked shares, lower ones the mean color.
const STACKED = 10;
const WAITS = 4000;
// Where the critical path changes location more often than once in this many pixels, only the location with most of it
// is shown.
const MOSTLY = 12;
// This many changes within half of that distance each count as dense.
const THICKET = 10;

// The overlays: name, label, and description.
export const LAYERS = [
  ["waits", "Waits", "Mark single waits"], ["path", "Critical path", "What determines how long the run takes"],
  ["messages", "Messages", "Arrows of messages and one-sided transfers, the most costly first"],
  ["locks", "Locks", "Bars: who owns the locks that others wait for"],
  ["tasks", "Tasks", "Arrows from the creation of tasks to their start on another thread"],
  ["causes", "Causes", "Arrows from causes to the ends of waits"],
];

// A window of time and locations on two canvases: the window itself, and the whole run in a strip.
export class TimelinePicture {
  constructor() {
    /** @type {import("./timeline_data.js").TimelineData} */
    this.data = null;
    /** Seconds and indexes of locations. @type {{ from: number, to: number, first: number, last: number }} */
    this.window = null;
    this.layers = { waits: true, path: true, messages: true, locks: true, tasks: true, causes: true };
    /** What calls are colored by: "class" or "function". */
    this.coloring = "class";
    /** For each call path whether it is highlighted; null while all are. @type {Uint8Array | null} */
    this.lit = null;
    /** The location whose calls are shown one below the other. */
    this.picked = 0;
    /** @type {import("./timeline_stack.js").CallStack | null} */
    this.stack = null;
    /** @type {import("./timeline_counters.js").CounterLanes | null} */
    this.lanes = null;
    /** The wait that is picked, or -1. */
    this.selected = -1;
    /** @type {HTMLCanvasElement} */
    this.canvas = null;
    /** @type {HTMLCanvasElement} */
    this.strip = null;
    /** @type {import("./window_statistics.js").WindowStatistics | null} */
    this.statistics = null;
    /** What the window is, and what is left out of it, in words. @type {Record<"where" | "left", HTMLElement>} */
    this.said = null;
    /** Individual calls from a server. @type {import("./timeline_calls.js").CallsOnDemand | null} */
    this.demand = null;
    /** What is outlined besides the wait. @type {{ location: number, from: number, to: number } | null} */
    this.marked = null;
  }

  // The length of the strip, seconds.
  get whole() {
    return this.data.length;
  }

  resize() {
    if (!this.data || !this.window) return;
    this.width = this.canvas.parentElement.clientWidth;
    this.height = this.canvas.parentElement.clientHeight;
    if (this.width < 200 || this.height < 60) return;
    this.draw();
  }

  colors() {
    const found = this.data.classes.map(([name]) => parseColor(css(`--time-${name}`)));
    return { classes: found, ground: parseColor(css("--card")) };
  }

  draw() {
    if (this.frame || !this.data || !this.window || !(this.width >= 200)) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
      this.paintStrip();
      this.statistics?.show(this.window);
      this.lanes?.draw();
      this.stack?.draw();
    });
  }

  paint() {
    const { data, width, height } = this;
    const { from, to, first, last } = this.window;
    const context = fitCanvas(this.canvas, width, height);
    const room = { x: GUTTER, y: AXIS, width: width - GUTTER, height: height - AXIS };
    this.rows = last - first;
    const rowHeight = room.height / this.rows;
    const x = (time) => room.x + ((time - from) / (to - from)) * room.width;
    const y = (row) => room.y + (row - first) * rowHeight;
    const picture = { context, room, x, y, rowHeight, gap: rowHeight >= 6 ? 1 : 0, colors: this.colors() };
    const level = data.level((to - from) / room.width, this.rows / room.height);
    const isClose = x(level.width) - x(0) > 1.5;
    const close = isClose && data.covers(this.window);
    if (isClose) this.demand?.want(this.window);
    const shows = close ? "calls" : "shares";
    if (shows !== this.canvas.dataset.shows) {
      this.canvas.dataset.shows = shows;
      this.legend();
    }
    context.save();
    context.beginPath();
    context.rect(room.x, room.y, room.width, room.height);
    context.clip();
    if (close) this.paintCalls(picture);
    else {
      this.paintShares(picture, level);
      nameKernels(this, picture, GUTTER);
    }
    const shown = { waits: 0, arrows: 0, here: 0 };
    if (this.layers.waits) shown.waits = this.paintWaits(picture);
    if (this.layers.locks) paintLocks(this, picture, css("--card"));
    if (this.layers.path) this.paintPath(picture);
    if (rowHeight >= 5) {
      const { messages, transfers, tasks } = data;
      if (this.layers.messages) Object.assign(shown, paintArrows(this, picture, [[messages, []], [transfers, [5, 3]]]));
      if (this.layers.tasks) {
        const ofTasks = paintArrows(this, picture, [[tasks, [2, 3]]]);
        shown.arrows += ofTasks.arrows;
        shown.here += ofTasks.here;
      }
    }
    if (this.layers.causes && rowHeight >= 3) this.paintCauses(picture);
    if (this.marked) this.outline(picture, this.marked);
    context.restore();
    this.paintAxes(picture);
    const coarse = !close && (x(level.width) - x(0) > 4 || level.merged * rowHeight > 4) ? level : null;
    this.tell(shown, close, coarse);
  }

  paintShares({ context, room, rowHeight, gap, colors }, level) {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const ratio = devicePixelRatio || 1;
    const columns = Math.max(1, Math.round(room.width * ratio));
    const lines = Math.max(1, Math.round(room.height * ratio));
    const image = new ImageData(columns, lines);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(pixel(colors.ground));
    const per = rowHeight * ratio;
    const bands = per >= 1
      ? Array.from({ length: last - first }, (_, i) => [Math.round(i * per), Math.max(Math.round(i * per) + 1, Math.round((i + 1) * per) - gap * ratio), first + i, first + i + 1])
      : Array.from({ length: lines }, (_, line) => [line, line + 1, first + line / per, first + Math.max((line + 1) / per, line / per + 1e-6)]);
    const step = (to - from) / columns;
    const shares = new Float32Array(data.planes * columns);
    const tones = colors.classes.map(pixel);
    const waiting = data.planes - 1;
    const own = Array.from(level.present);
    let above = null;
    for (const [top, bottom, begin, end] of bands) {
      // Rows of the same cells are identical.
      const cell = `${Math.floor(begin / level.merged)} ${Math.ceil(end / level.merged)}`;
      if (cell === above && bottom - top === 1) {
        pixels.copyWithin(top * columns, (top - 1) * columns, top * columns);
        continue;
      }
      above = cell;
      data.shares(level, from, step, columns, begin, end, shares);
      if (rowHeight < STACKED) {
        for (let column = 0; column < columns; column++) pixels[top * columns + column] = mixture(colors, own, shares, column, columns);
        for (let line = top + 1; line < bottom; line++) pixels.copyWithin(line * columns, top * columns, (top + 1) * columns);
        continue;
      }
      for (let column = 0; column < columns; column++) {
        let at = bottom;
        let sum = 0;
        for (const plane of own) {
          sum += shares[plane * columns + column];
          const until = Math.max(top, Math.round(bottom - Math.min(1, sum) * (bottom - top)));
          for (; at > until; at--) {
            pixels[(at - 1) * columns + column] = plane === waiting && (at + column) % 7 < 2 ? lighter(tones[plane]) : tones[plane];
          }
        }
      }
    }
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(image, Math.round(room.x * ratio), Math.round(room.y * ratio));
    context.restore();
  }

  paintCalls({ context, x, y, rowHeight, gap, colors }) {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const { enter, leave, position, classes } = data.calls;
    const labels = [];
    for (let row = first; row < last; row++) {
      for (let i = data.rowOf[row]; i < data.rowOf[row + 1] && enter[i] <= to; i++) {
        if (leave[i] < from) continue;
        const left = Math.max(GUTTER, x(enter[i]));
        const wide = Math.min(this.width, x(leave[i])) - left;
        const box = [left, y(row), Math.max(0.5, wide - (wide > 3 ? 0.5 : 0)), rowHeight - gap];
        if (!this.isLit(position[i])) {
          context.globalAlpha = 1;
          context.fillStyle = css("--card");
          context.fillRect(...box);
          context.globalAlpha = 0.2;
        }
        context.fillStyle = this.tone(i, colors);
        context.fillRect(...box);
        context.globalAlpha = 1;
        if (rowHeight >= 15 && wide > 34) labels.push([i, row, left, wide]);
      }
    }
    // The name of a caller goes where no callee covers it.
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [i, row, left, wide] of labels) {
      const inner = i + 1 < data.rowOf[row + 1] && enter[i + 1] < leave[i] ? Math.min(this.width, x(enter[i + 1])) : left + wide;
      if (inner - left < 34) continue;
      // A wait at the begin of the call shows the name already.
      if (this.layers.waits && classes[position[i]] !== 0 && data.waitAt(row, enter[i]) >= 0) continue;
      context.fillStyle = this.ink(i, colors);
      context.save();
      context.beginPath();
      context.rect(left, y(row), inner - left - 3, rowHeight);
      context.clip();
      context.fillText(data.callName(position[i]), left + 4, y(row) + rowHeight / 2);
      context.restore();
    }
  }

  // The color of a call: by class, or by function.
  tone(call, colors) {
    const { position, classes } = this.data.calls;
    if (this.coloring === "function" && !this.data.isManagement(position[call])) return functionColor(this.data.functionOf(position[call]));
    const [r, g, b] = colors.classes[classes[position[call]]];
    return `rgb(${r} ${g} ${b})`;
  }

  // The color of the name of a call.
  ink(call, colors) {
    const { position, classes } = this.data.calls;
    if (!this.isLit(position[call])) return css("--soft");
    return this.coloring === "function" ? "#1a1a1a" : readable(colors.classes[classes[position[call]]]);
  }

  // Whether a call path is highlighted: all are, unless functions were searched for.
  isLit(position) {
    return this.lit === null || position < 0 || this.lit[position] > 0;
  }

  // A hook for the enclosing view: calls are shown now, or shares of classes.
  legend() {}

  paintWaits({ context, x, y, rowHeight, gap }) {
    const { location, position, begin, end, kind } = this.data.waits;
    const { from, to, first, last } = this.window;
    // A host that waits for a busy device loses nothing.
    const tones = this.data.kinds.map((kind) => css(kind === "gpu_host_wait" ? "--time-devices" : "--time-waiting"));
    const hatches = tones.map((tone) => this.hatch(tone));
    /** @type {[number, number, number][]} */
    const labels = [];
    let painted = 0;
    for (let i = 0; i < begin.length && painted < WAITS; i++) {
      if (location[i] < first || location[i] >= last || begin[i] > to || end[i] < from) continue;
      const left = x(begin[i]);
      const wide = x(end[i]) - left;
      if (wide < 1.5 && i !== this.selected) continue;
      painted++;
      const isLit = this.isLit(position[i]);
      context.globalAlpha = isLit ? 1 : 0.2;
      context.fillStyle = hatches[kind[i]];
      context.fillRect(left, y(location[i]), wide, rowHeight - gap);
      if (isLit && rowHeight >= 15 && wide > 60) labels.push([i, Math.max(GUTTER, left), Math.min(this.width, left + wide)]);
      if (rowHeight >= 8 && wide >= 4) {
        context.strokeStyle = tones[kind[i]];
        context.lineWidth = 1;
        context.strokeRect(left + 0.5, y(location[i]) + 0.5, wide - 1, rowHeight - gap - 1);
      }
      context.globalAlpha = 1;
    }
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [i, left, right] of labels) {
      const text = this.data.callName(position[i]);
      const wide = context.measureText(text).width;
      if (wide + 16 > right - left) continue;
      context.fillStyle = tones[kind[i]];
      context.fillRect(left + 4, y(location[i]) + rowHeight / 2 - 8, wide + 8, 16);
      context.fillStyle = readable(parseColor(tones[kind[i]]));
      context.fillText(text, left + 8, y(location[i]) + rowHeight / 2);
    }
    if (this.selected >= 0) {
      const i = this.selected;
      this.outline({ context, x, y, rowHeight, gap }, { location: location[i], from: begin[i], to: end[i] });
    }
    return painted;
  }

  outline({ context, x, y, rowHeight, gap }, { location, from, to }) {
    context.strokeStyle = css("--ink");
    context.lineWidth = 2;
    context.strokeRect(x(from) - 1, y(location) - 1, Math.max(3, x(to) - x(from)) + 2, Math.max(3, rowHeight - gap) + 2);
  }

  hatch(color) {
    if (this.hatched?.color === color) return this.hatched.pattern;
    const tile = make("canvas", { width: 8, height: 8 });
    const context = tile.getContext("2d");
    context.fillStyle = color;
    context.fillRect(0, 0, 8, 8);
    context.strokeStyle = "rgb(255 255 255 / 0.4)";
    context.lineWidth = 2;
    for (const shift of [-8, 0, 8]) {
      context.beginPath();
      context.moveTo(shift - 1, 9);
      context.lineTo(shift + 9, -1);
      context.stroke();
    }
    this.hatched = { color, pattern: context.createPattern(tile, "repeat") };
    return this.hatched.pattern;
  }

  paintPath({ context, room, x, y, rowHeight }) {
    const { location, from, to } = this.data.path;
    const window = this.window;
    const inside = [];
    for (let i = 0; i < location.length; i++) {
      if (from[i] <= window.to && to[i] >= window.from) inside.push({ location: location[i], from: from[i], to: to[i] });
    }
    const changes = inside.filter((stretch, i) => i > 0 && stretch.location !== inside[i - 1].location);
    const isThicket = changes.some((stretch, i) => i >= THICKET && x(stretch.from) - x(changes[i - THICKET].from) < THICKET * MOSTLY / 2);
    const mostly = isThicket || inside.length * MOSTLY > room.width;
    const stretches = mostly ? mostlyOn(inside, window, Math.ceil(room.width / MOSTLY)) : inside;
    this.canvas.dataset.path = mostly ? "mostly" : "each";
    // Below the names of calls, if shown.
    const at = (row) => y(row) + Math.max(0.5, rowHeight - 1) * (rowHeight >= 15 ? 0.85 : 0.5);
    const stroke = (color, wide) => {
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.stroke();
    };
    context.lineJoin = "round";
    // Lines between locations are thinner, so that many of them do not hide the rest.
    context.beginPath();
    stretches.forEach((stretch, i) => {
      if (i === 0 || stretches[i - 1].location === stretch.location) return;
      context.moveTo(x(stretch.from), at(stretches[i - 1].location));
      context.lineTo(x(stretch.from), at(stretch.location));
    });
    if (!mostly) stroke(css("--card"), 5);
    context.globalAlpha = mostly ? 0.35 : 1;
    stroke(css("--path"), mostly ? 1 : 2.5);
    context.globalAlpha = 1;
    context.beginPath();
    for (const stretch of stretches) {
      context.moveTo(x(stretch.from), at(stretch.location));
      context.lineTo(x(stretch.to), at(stretch.location));
    }
    stroke(css("--card"), 5);
    stroke(css("--path"), 2.5);
  }

  paintCauses(picture) {
    const { waits } = this.data;
    const { from, to, first, last } = this.window;
    let drawn = 0;
    for (let i = 0; i < waits.begin.length && drawn < ARROWS; i++) {
      const cause = waits.cause_location[i];
      const end = waits.end[i];
      if (cause < 0 || Number.isNaN(waits.cause_time[i]) || cause === waits.location[i]) continue;
      if (i !== this.selected) {
        if (waits.begin[i] > to || end < from || waits.location[i] < first || waits.location[i] >= last) continue;
        if (picture.x(end) - picture.x(waits.begin[i]) < 6) continue;
      }
      drawn++;
      const start = this.data.ended[waits.kind[i]] ? end : waits.cause_time[i];
      paintArrow(picture, [start, cause], [end, waits.location[i]], css("--bad"), [], i === this.selected ? 2.5 : 1.25);
    }
  }

  paintAxes({ context, room, x, y, rowHeight }) {
    const { data } = this;
    const { from, to, first, last } = this.window;
    context.fillStyle = css("--soft");
    context.strokeStyle = css("--line");
    context.lineWidth = 1;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.max(1, 2 ** Math.ceil(Math.log2(14 / rowHeight)));
    for (let row = Math.ceil(first / every) * every; row < last; row += every) {
      const middle = every > 1 ? y(row) + 5 : y(row) + rowHeight / 2;
      if (middle < this.height - 5) context.fillText(data.shortName(row), room.x - 8, middle, room.x - 10);
    }
    context.textAlign = "center";
    const step = niceStep((to - from) / Math.max(3, room.width / 130));
    for (let tick = Math.ceil(from / step); tick * step <= to; tick++) {
      const at = x(tick * step);
      context.beginPath();
      context.moveTo(at, room.y - 5);
      context.lineTo(at, room.y);
      context.stroke();
      const text = this.clock(tick * step, step);
      const half = context.measureText(text).width / 2;
      if (at - half > room.x - 20 && at + half < this.width) context.fillText(text, at, room.y - 13);
    }
    const rows = last - first < data.count ? `, ${data.name(first)} to ${data.name(last - 1)}` : "";
    // Mark the location whose call stack is shown below.
    if (this.stack?.isShown && this.picked >= first && this.picked < last) {
      context.fillStyle = css("--accent");
      context.fillRect(room.x - 4, y(this.picked), 4, Math.max(2, rowHeight - 1));
    }
    this.said.where.textContent = `${this.clock(from)} to ${this.clock(to)} (${seconds(to - from)})${rows}`;
    this.canvas.setAttribute("aria-label", `${this.rows} locations from ${this.clock(from)} to ${this.clock(to)}`);
  }

  // A time with enough digits for the window.
  clock(time, step = (this.window.to - this.window.from) / 1000) {
    const places = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step || 1))));
    return `${time.toFixed(places)} s`;
  }

  // A note on what the picture omits.
  tell({ arrows, here }, close, coarse) {
    const { totals, waits, messages, transfers, tasks, locks, path, calls } = this.data;
    const left = [];
    const some = (name, kept, what) => {
      if (kept < totals[name]) left.push(`${kept.toLocaleString("en-US")} of ${plural(totals[name], what)}`);
    };
    if (!this.data.hasAllWaits(this.window)) some("waits", (this.data.known ?? waits).begin.length, "wait");
    some("messages", messages.start.length, "message");
    some("transfers", transfers.start.length, "transfer");
    some("tasks", tasks.start.length, "task that starts elsewhere");
    some("locks", locks.begin.length, "owner of a lock");
    some("path", path.location.length, "critical-path segment");
    const notes = [];
    if (arrows < here) {
      notes.push(arrows ? `showing the ${arrows} most costly of ${here} arrows` : `zoom in to see ${plural(here, "arrow")}`);
    }
    if (coarse) notes.push(`resolution: ${seconds(coarse.width)}${coarse.merged > 1 ? ` and ${coarse.merged} locations` : ""}`);
    if (this.layers.path && this.canvas.dataset.path === "mostly") notes.push("critical path: where it mostly is (zoom in for details)");
    const no = !calls.location.length && totals.calls && !this.demand?.possible ? `individual calls omitted (${counted(totals.calls)})` : "";
    if (left.length) notes.push(`shown: the longest ${[...left, ...(no ? [no] : [])].join(", ")}`);
    else if (no) notes.push(no);
    if (this.demand?.possible && !calls.location.length) notes.push("zoom in for all calls and waits");
    else if (no) notes.push("whywait serve shows all calls and waits");
    this.said.left.textContent = notes.join("; ");
    this.said.left.dataset.close = String(close);
  }

  // The whole run in a strip, with the window in it.
  paintStrip() {
    const { width } = this;
    const tones = this.colors().classes.map(([r, g, b]) => `rgb(${r} ${g} ${b})`);
    const key = `${width} ${devicePixelRatio} ${this.whole} ${tones.join()}`;
    if (this.stripPicture?.key !== key) this.stripPicture = { key, canvas: this.wholeRun(width - GUTTER, tones) };
    const context = fitCanvas(this.strip, width, STRIP);
    context.drawImage(this.stripPicture.canvas, GUTTER, 0, width - GUTTER, STRIP);
    context.fillStyle = css("--soft");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillText("whole run", GUTTER - 8, STRIP / 2 + 4);
    const x = (time) => GUTTER + Math.min(1, Math.max(0, time / this.whole)) * (width - GUTTER);
    const { from, to } = this.window;
    context.fillStyle = css("--veil");
    context.fillRect(GUTTER, 0, x(from) - GUTTER, STRIP);
    context.fillRect(x(to), 0, width - x(to), STRIP);
    context.strokeStyle = css("--accent");
    context.lineWidth = 2;
    context.strokeRect(Math.min(width - 4, x(from)) + 1, 1, Math.max(3, x(to) - x(from) - 2), STRIP - 2);
  }

  wholeRun(columns, tones) {
    const { data } = this;
    const step = this.whole / columns;
    const level = data.level(step, data.count);
    const shares = data.shares(level, 0, step, columns, 0, data.count, new Float32Array(data.planes * columns));
    const canvas = make("canvas");
    const context = fitCanvas(canvas, columns, STRIP);
    for (let column = 0; column < columns; column++) {
      let at = STRIP - 2;
      for (const plane of level.present) {
        const high = shares[plane * columns + column] * (STRIP - 4);
        context.fillStyle = tones[plane];
        context.fillRect(column, at - high, 1, high);
        at -= high;
      }
    }
    return canvas;
  }
}

// For each column of time, the location with most of the critical path.
export function mostlyOn(stretches, { from, to }, columns) {
  const step = (to - from) / columns;
  const times = Array.from({ length: columns }, () => new Map());
  for (const stretch of stretches) {
    const first = Math.max(0, Math.floor((stretch.from - from) / step));
    const last = Math.min(columns - 1, Math.floor((stretch.to - from) / step));
    for (let column = first; column <= last; column++) {
      const begin = from + column * step;
      const time = Math.min(stretch.to, begin + step) - Math.max(stretch.from, begin);
      times[column].set(stretch.location, (times[column].get(stretch.location) ?? 0) + time);
    }
  }
  return times.flatMap((known, column) => {
    if (!known.size) return [];
    const [location] = [...known].reduce((best, one) => (one[1] > best[1] ? one : best));
    return [{ location, from: from + column * step, to: from + (column + 1) * step }];
  });
}

// Colors of functions: distant hues for consecutive numbers, light enough for dark text.
export function functionColor(number) {
  const hue = (47 + number * 137.508) % 360;
  return `hsl(${hue.toFixed(1)} ${number % 2 ? 58 : 42}% ${[74, 66, 80][number % 3]}%)`;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
}

function parseColor(text) {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

// The mean color of a column as a pixel, where stacked shares do not fit.
function mixture({ classes, ground }, present, shares, column, columns) {
  let rest = 1;
  let red = 0;
  let green = 0;
  let blue = 0;
  for (const plane of present) {
    const share = shares[plane * columns + column];
    const [r, g, b] = classes[plane];
    rest -= share;
    red += share * r;
    green += share * g;
    blue += share * b;
  }
  if (rest < 0) rest = 0;
  const part = (sum, behind) => Math.min(255, Math.round(sum + rest * behind));
  return ((255 << 24) | (part(blue, ground[2]) << 16) | (part(green, ground[1]) << 8) | part(red, ground[0])) >>> 0;
}

// As a pixel: the lowest byte is red.
export function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function lighter(pixel) {
  const part = (shift) => Math.min(255, ((pixel >> shift) & 255) + 70) << shift;
  return ((255 << 24) | part(16) | part(8) | part(0)) >>> 0;
}

/** @param {number[]} color */
function readable([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? "#1a1a1a" : "#ffffff";
}
