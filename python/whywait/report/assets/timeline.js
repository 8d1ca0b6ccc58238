// The picture over time: locations from top to bottom, time to the right. Far away, shares of what locations do in bins
// of time; close up, single calls, waits and arrows.

const GUTTER = 84;
const AXIS = 22;
const STRIP = 46;
// Rows that are at least so high show shares stacked, lower ones the mean of their colours.
const STACKED = 10;
const ARROWS = 300;
const WAITS = 4000;
const LAYERS = [
  ["waits", "Waits", "Mark single waits"], ["path", "Critical path", "What determines how long the run takes"],
  ["messages", "Messages", "Arrows of messages and one-sided transfers, the most costly first"],
  ["causes", "Causes", "Arrows from causes to the ends of waits"],
];

class TimelineData {
  static async open(model) {
    const head = await documentBlock("timeline");
    const has = (name) => document.getElementById(`data-timeline-${name}`) !== null;
    const names = ["places", "shares", "calls", "waits", "messages", "transfers", ...(has("path") ? ["path"] : [])];
    const blocks = await Promise.all(names.map((name) => columnBlock(`timeline-${name}`)));
    return new TimelineData(model, head, Object.fromEntries(names.map((name, i) => [name, blocks[i]])));
  }

  constructor(model, head, { shares, ...blocks }) {
    Object.assign(this, head, blocks);
    this.model = model;
    this.count = this.places.rank.length;
    this.planes = head.classes.length;
    this.levels = head.levels.map((level, i) => ({ ...level, shares: shares[i], present: this.present(level, shares[i]) }));
    this.rowOf = firsts(this.calls.location, this.count);
    this.threaded = this.places.thread.some((thread) => thread > 0);
    this.path ??= { location: [], from: [], to: [], position: [] };
    this.arrows = [[this.messages, "message"], [this.transfers, "transfer"]];
  }

  // The classes that occur in a level.
  present({ rows, bins }, shares) {
    const planes = Array.from(this.classes.keys());
    return planes.filter((plane) => shares.subarray(plane * rows * bins, (plane + 1) * rows * bins).some((share) => share > 0));
  }

  name(location) {
    const { rank, thread } = this.places;
    if (rank[location] < 0) return `location ${location}`;
    return this.threaded ? `rank ${rank[location]}.${thread[location]}` : `rank ${rank[location]}`;
  }

  callName(position) {
    return position < 0 ? "" : this.model.callName(position + this.model.shift);
  }

  callPath(position) {
    return position < 0 ? "" : this.model.callPath(position + this.model.shift).join(" → ");
  }

  metric(kind) {
    return this.model.metrics[this.model.metricNumber.get(this.kinds[kind])];
  }

  // The level whose cells fit pixels best, given how much time and how many locations a pixel has.
  level(time, locations) {
    const excess = ({ width, merged }) => Math.max(0, Math.log2(width / time)) + Math.max(0, Math.log2(merged / locations));
    return this.levels.reduce((best, level) => (excess(level) < excess(best) ? level : best));
  }

  // Shares of all classes, each 0..1, in columns of time on some locations: of class p in column c at [p * columns + c].
  shares(level, from, step, columns, first, last, into) {
    const { width, bins } = level;
    const rows = [Math.floor(first / level.merged), Math.min(level.rows, Math.ceil(last / level.merged))];
    into.fill(0);
    if (this.columns?.from !== from || this.columns.step !== step || this.columns.count !== columns || this.columns.width !== width) {
      const bounds = new Int32Array(2 * columns);
      for (let column = 0; column < columns; column++) {
        const begin = Math.min(bins - 1, Math.max(0, Math.floor((from + column * step) / width)));
        bounds[2 * column] = begin;
        bounds[2 * column + 1] = Math.min(bins, Math.max(begin + 1, Math.ceil((from + (column + 1) * step) / width)));
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
          into[to + column] += sum / (end - begin);
        }
      }
      const scale = 1 / (255 * Math.max(1, rows[1] - rows[0]));
      for (let column = 0; column < columns; column++) into[to + column] *= scale;
    }
    return into;
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

  // The shortest of the known waits of a location at a time, or -1.
  waitAt(location, time, slack = 0) {
    const { begin, waiting, location: where } = this.waits;
    let found = -1;
    for (let i = 0; i < begin.length; i++) {
      if (where[i] === location && begin[i] - slack <= time && begin[i] + waiting[i] + slack >= time) found = i;
    }
    return found;
  }
}

// Of numbers in order, where each of 0..count-1 begins.
function firsts(numbers, count) {
  const found = new Uint32Array(count + 1);
  for (const number of numbers) found[number + 1]++;
  for (let i = 0; i < count; i++) found[i + 1] += found[i];
  return found;
}

class Timeline {
  constructor(model) {
    this.model = model;
    this.layers = { waits: true, path: true, messages: true, causes: true };
    this.selected = -1;
    this.node = make("section", { class: "timeline", "aria-label": "Timeline" });
  }

  get exists() {
    return document.getElementById("data-timeline") !== null;
  }

  // Show what an address asks for: from, to (seconds), places (first-last, indexes of locations), wait (a begin).
  async follow(query) {
    if (!this.exists) {
      fill(this.node, make("p", { class: "opening" },
        "This report has no timeline, which is made from the events: the result that it was made from holds none, or was "
          + "found by several processes under MPI. Analyse the trace again, by one process (", make("code", {}, `whywait analyze ${this.model.run.path} --html`), ")."));
      return;
    }
    if (!this.data) {
      fill(this.node, make("p", { class: "opening" }, "Opening the timeline…"));
      this.opening ??= TimelineData.open(this.model);
      this.data = await this.opening;
      this.build();
    }
    const number = (name, otherwise) => {
      const value = Number.parseFloat(query.get(name));
      return Number.isFinite(value) ? value : otherwise;
    };
    const [first, last] = /^(\d+)-(\d+)$/.exec(query.get("places") ?? "")?.slice(1).map(Number) ?? [0, this.data.count - 1];
    if (query.size || !this.window) {
      this.look(number("from", 0), number("to", this.data.length), first, last + 1);
    }
    this.resize();
    if (query.has("wait") && query.has("at")) {
      const time = number("wait", 0);
      const location = number("at", 0);
      this.select(this.data.waitAt(location, time, 1e-9));
    }
    this.node.dataset.shown = "";
  }

  build() {
    const { data } = this;
    const button = (text, title, act) => make("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.canvas = make("canvas", {
      tabindex: 0, role: "img", class: "times", onpointerdown: (event) => this.grab(event), onpointermove: (event) => this.move(event),
      onpointerup: (event) => this.drop(event), onpointerleave: () => tip.hide(), onkeydown: (event) => this.key(event),
      ondblclick: (event) => this.zoom(0.25, event),
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.strip = make("canvas", {
      class: "strip", role: "img", "aria-label": "The whole run; drag over it to choose a time",
      onpointerdown: (event) => this.stripGrab(event), onpointermove: (event) => this.stripMove(event),
      onpointerup: () => { this.stripFrom = null; },
    });
    this.where = make("span", { class: "crumbs" });
    this.details = make("div", { class: "picked", role: "status" });
    this.left = make("span", { class: "hint" });
    const layers = LAYERS.filter(([name]) => name !== "path" || data.path.location.length).map(([name, text, title]) => {
      const box = make("input", { type: "checkbox", "data-layer": name, checked: true,
        onchange: () => { this.layers[name] = box.checked; this.draw(); } });
      return make("label", { class: "check", title }, box, text);
    });
    const present = new Set(data.levels[0].present);
    fill(this.node,
      make("div", { class: "toolbar" },
        button("−", "Zoom out (−)", () => this.zoom(2)), button("+", "Zoom in (+)", () => this.zoom(0.5)),
        button("All", "Everything (0)", () => this.reset()), button("Longest waits", "To the next one of the longest waits (w)", () => this.next()),
        layers, this.where),
      this.strip,
      make("div", { class: "plane" }, this.canvas),
      make("div", { class: "classes" }, data.classes.map(([name, text], plane) => present.has(plane)
        && make("span", {}, make("i", { class: `swatch ${name}`, style: { "--colour": `var(--time-${name})` } }), text)),
        make("span", {}, make("i", { class: "swatch nothing" }), "Outside of the program"), this.left),
      this.details);
    this.describe();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentNode);
  }

  // The window -----------------------------------------------------------------------------------------------------

  look(from, to, first, last) {
    const { length, count } = this.data;
    const least = Math.max(length * 1e-9, 1e-9);
    const span = Math.min(length, Math.max(least, to - from)) || 1;
    const rows = Math.min(count, Math.max(1, Math.round(last - first)));
    const begin = Math.min(Math.max(0, from), Math.max(0, length - span));
    const top = Math.min(Math.max(0, Math.round(first)), count - rows);
    this.window = { from: begin, to: begin + span, first: top, last: top + rows };
    this.draw();
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.note(), 150);
  }

  // Put the window into the address, without a step in the history for each.
  note() {
    if (document.body.dataset.view !== "timeline") return;
    const { from, to, first, last } = this.window;
    const query = { from: from.toFixed(9), to: to.toFixed(9) };
    if (last - first < this.data.count) query.places = `${first}-${last - 1}`;
    history.replaceState(null, "", address("timeline", query));
  }

  reset() {
    this.look(0, this.data.length, 0, this.data.count);
  }

  // `factor` of the time, about the pointer or the middle.
  zoom(factor, event) {
    const { from, to, first, last } = this.window;
    const at = event && this.rows ? this.timeAt(event) : (from + to) / 2;
    const share = (at - from) / (to - from);
    const span = Math.min(this.data.length, (to - from) * factor);
    this.look(at - share * span, at + (1 - share) * span, first, last);
  }

  zoomRows(factor, at) {
    const { from, to, first, last } = this.window;
    const middle = at ?? (first + last) / 2;
    const rows = Math.max(1, (last - first) * factor);
    const share = (middle - first) / (last - first);
    const top = middle - share * rows;
    this.look(from, to, factor < 1 ? Math.ceil(top) : Math.floor(top), (factor < 1 ? Math.ceil(top) : Math.floor(top)) + Math.round(rows));
  }

  pan(time, rows) {
    const { from, to, first, last } = this.window;
    const step = time * (to - from);
    this.look(from + step, to + step, first + rows, last + rows);
  }

  wheel(event) {
    event.preventDefault();
    tip.hide();
    const factor = Math.exp(Math.sign(event.deltaY || event.deltaX) * Math.min(0.5, Math.abs(event.deltaY || event.deltaX) / 300));
    if (event.shiftKey) this.zoomRows(factor, this.rowAt(event));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 800, 0);
    else this.zoom(factor, event);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = Math.max(1, Math.round((this.window.last - this.window.first) / 8));
    const actions = {
      ArrowLeft: () => this.pan(-0.15, 0), ArrowRight: () => this.pan(0.15, 0),
      ArrowUp: () => this.pan(0, -rows), ArrowDown: () => this.pan(0, rows),
      PageUp: () => this.pan(-0.9, 0), PageDown: () => this.pan(0.9, 0),
      Home: () => this.look(0, this.window.to - this.window.from, this.window.first, this.window.last),
      End: () => this.look(this.data.length, Infinity, this.window.first, this.window.last),
      Enter: () => this.jumpToCause(),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  // Keys that work wherever the focus is.
  get actions() {
    return {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.reset(),
      "[": () => this.zoomRows(2), "]": () => this.zoomRows(0.5), w: () => this.next(),
    };
  }

  // Pointer --------------------------------------------------------------------------------------------------------

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  timeAt(event) {
    const { from, to } = this.window;
    return from + ((this.point(event).x - GUTTER) / (this.width - GUTTER)) * (to - from);
  }

  rowAt(event) {
    const { first, last } = this.window;
    return first + ((this.point(event).y - AXIS) / (this.height - AXIS)) * (last - first);
  }

  grab(event) {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { ...this.point(event), window: this.window, moved: false };
  }

  move(event) {
    if (!this.held) { this.hover(event); return; }
    const { x, y } = this.point(event);
    const { window: { from, to, first, last } } = this.held;
    if (Math.hypot(x - this.held.x, y - this.held.y) > 3) this.held.moved = true;
    if (!this.held.moved) return;
    tip.hide();
    const time = ((this.held.x - x) / (this.width - GUTTER)) * (to - from);
    const rows = Math.round(((this.held.y - y) / (this.height - AXIS)) * (last - first));
    this.look(from + time, to + time, first + rows, last + rows);
  }

  drop(event) {
    const { held } = this;
    this.held = null;
    if (!held || held.moved) return;
    const place = this.placeAt(event);
    this.select(place ? this.data.waitAt(place.location, place.time, place.slack) : -1);
  }

  placeAt(event) {
    const { x, y } = this.point(event);
    if (x < GUTTER || y < AXIS || x > this.width || y > this.height) return null;
    const location = Math.floor(this.rowAt(event));
    if (location < 0 || location >= this.data.count) return null;
    const { from, to } = this.window;
    return { location, time: this.timeAt(event), slack: (1.5 * (to - from)) / this.width };
  }

  hover(event) {
    const place = this.placeAt(event);
    if (!place) { tip.hide(); return; }
    const { data } = this;
    const { location, time, slack } = place;
    const { from, to, first, last } = this.window;
    const pixel = (to - from) / (this.width - GUTTER);
    const rows = (last - first) / (this.height - AXIS);
    const level = data.level(pixel, rows);
    const shares = Array.from(data.shares(level, time - pixel / 2, pixel, 1, location, location + 1, new Float32Array(data.planes)));
    const bin = Math.floor(time / level.width);
    const call = this.canvas.dataset.shows === "calls" ? data.callAt(location, time) : -1;
    const wait = data.waitAt(location, time, slack);
    const group = level.merged > 1
      ? ` (of ${data.name(Math.floor(location / level.merged) * level.merged)} to ${data.name(Math.min(data.count, (Math.floor(location / level.merged) + 1) * level.merged) - 1)})` : "";
    const rest = 1 - shares.reduce((sum, share) => sum + share, 0);
    const lines = call >= 0 ? [] : [...data.classes.map(([name, text], plane) => [name, text, shares[plane]]), ["nothing", "Outside of the program", rest]]
      .filter(([, , share]) => share >= 0.005).sort((a, b) => b[2] - a[2]);
    tip.show(event, make("b", {}, data.name(location)), group, ` at ${this.clock(time)}`,
      call >= 0 && make("div", {}, data.callPath(data.calls.position[call]), make("br"),
        make("small", {}, `${seconds(data.calls.leave[call] - data.calls.enter[call])} in this call, from ${data.calls.enter[call].toFixed(9)} s`)),
      wait >= 0 && make("div", {}, make("i", { class: "swatch waiting", style: { "--colour": "var(--time-waiting)" } }),
        this.waitText(wait)),
      lines.length > 0 && make("table", {}, lines.map(([name, text, share]) => make("tr", {},
        make("th", {}, make("i", { class: `swatch ${name}`, style: { "--colour": `var(--time-${name}, transparent)` } }), text),
        make("td", {}, percent(share))))),
      lines.length > 0 && make("small", {}, `of ${this.clock(bin * level.width)} to ${this.clock((bin + 1) * level.width)}`));
  }

  // Waits ----------------------------------------------------------------------------------------------------------

  waitText(wait) {
    const { data } = this;
    const { kind, waiting, cause_location: cause } = data.waits;
    const label = data.metric(kind[wait])?.label ?? data.kinds[kind[wait]];
    return `${label}: waits ${seconds(waiting[wait])}${cause[wait] >= 0 ? ` for ${data.name(cause[wait])}` : ""}`;
  }

  select(wait) {
    this.selected = wait;
    this.describe();
    this.draw();
  }

  describe() {
    const { data, selected: wait } = this;
    if (wait < 0) {
      fill(this.details, make("p", { class: "hint" },
        "Drag to move, wheel to zoom, Shift and wheel for ranks; click on a wait for its cause. Keys: ← → ↑ ↓  + −  [ ]  0  w"));
      return;
    }
    const { waits } = data;
    const place = (location) => Math.floor(location / this.model.resolution.merged);
    const row = (location) => this.model.systemOfPlace[place(location)];
    const call = (position) => (position < 0 ? undefined : this.model.callpaths.id[position]);
    const cause = waits.cause_location[wait];
    fill(this.details,
      make("p", {}, make("b", {}, `${data.name(waits.location[wait])}: ${this.waitText(wait)}`), " in ",
        make("code", {}, data.callName(waits.position[wait])), `, from ${waits.begin[wait].toFixed(9)} s to ${(waits.begin[wait] + waits.waiting[wait]).toFixed(9)} s. `,
        cause >= 0 && waits.cause_position[wait] >= 0 && [`It ended with `, make("code", {}, data.callPath(waits.cause_position[wait])),
          Number.isNaN(waits.cause_time[wait]) ? "" : ` on ${data.name(cause)}, from ${waits.cause_time[wait].toFixed(9)} s.`]),
      make("p", { class: "jumps" },
        cause >= 0 && make("button", { type: "button", onclick: () => this.jumpToCause() }, "Go to the cause"),
        make("a", { href: exploreLink(data.kinds[waits.kind[wait]], call(waits.position[wait]), row(waits.location[wait])) }, "Its row in the explorer"),
        cause >= 0 && waits.cause_position[wait] >= 0
          && make("a", { href: exploreLink("time", call(waits.cause_position[wait]), row(cause)) }, "The cause in the explorer")));
  }

  // Bring a wait into the picture, with its cause.
  show(wait) {
    const { waits, count } = this.data;
    const cause = waits.cause_location[wait];
    const begin = Math.min(waits.begin[wait], Number.isNaN(waits.cause_time[wait]) ? Infinity : waits.cause_time[wait]);
    const end = waits.begin[wait] + waits.waiting[wait];
    const room = Math.max(end - begin, waits.waiting[wait]) * 0.6;
    const places = [waits.location[wait], ...(cause >= 0 ? [cause] : [])];
    // Neighbours help to see what is usual, as long as rows can be told apart.
    const least = Math.min(...places);
    const most = Math.max(...places);
    const around = most - least < 32 ? Math.min(count, 32) : most - least + 1;
    const first = Math.max(0, Math.min(count - around, Math.floor((least + most + 1 - around) / 2)));
    this.look(begin - room, end + room, first, first + around);
    this.select(wait);
  }

  next() {
    if (this.data.waits.begin.length) this.show((this.selected + 1) % this.data.waits.begin.length);
  }

  // The cause in the middle; if it waits there itself, that wait is next.
  jumpToCause() {
    const { waits } = this.data;
    const wait = this.selected;
    if (wait < 0 || waits.cause_location[wait] < 0) return;
    const cause = waits.cause_location[wait];
    const time = Number.isNaN(waits.cause_time[wait]) ? waits.begin[wait] + waits.waiting[wait] : waits.cause_time[wait];
    const { from, to, first, last } = this.window;
    const span = to - from;
    const rows = last - first;
    const inside = cause >= first && cause < last ? first : Math.max(0, cause - Math.floor(rows / 2));
    let before = -1;
    for (let i = 0; i < waits.begin.length; i++) {
      const ends = waits.begin[i] + waits.waiting[i];
      if (waits.location[i] === cause && ends <= time && ends > time - span
        && (before < 0 || ends > waits.begin[before] + waits.waiting[before])) before = i;
    }
    this.look(time - span / 2, time + span / 2, inside, inside + rows);
    if (before >= 0) this.select(before);
  }

  // Drawing --------------------------------------------------------------------------------------------------------

  resize() {
    if (!this.data || !this.window) return;
    this.width = this.canvas.parentNode.clientWidth;
    this.height = this.canvas.parentNode.clientHeight;
    if (this.width < 200 || this.height < 60) return;
    this.draw();
  }

  colours() {
    const found = this.data.classes.map(([name]) => parseColour(css(`--time-${name}`)));
    return { classes: found, ground: parseColour(css("--card")) };
  }

  draw() {
    if (this.frame || !this.data || !this.window || !(this.width >= 200)) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
      this.paintStrip();
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
    const picture = { context, room, x, y, rowHeight, gap: rowHeight >= 6 ? 1 : 0, colours: this.colours() };
    const level = data.level((to - from) / room.width, this.rows / room.height);
    const close = data.calls.location.length > 0 && x(level.width) - x(0) > 1.5;
    this.canvas.dataset.shows = close ? "calls" : "shares";
    context.save();
    context.beginPath();
    context.rect(room.x, room.y, room.width, room.height);
    context.clip();
    if (close) this.paintCalls(picture);
    else this.paintShares(picture, level);
    const shown = { waits: 0, arrows: 0, here: 0 };
    if (this.layers.waits) shown.waits = this.paintWaits(picture);
    if (this.layers.path) this.paintPath(picture);
    if (this.layers.messages && rowHeight >= 5) Object.assign(shown, this.paintMessages(picture));
    if (this.layers.causes && rowHeight >= 3) this.paintCauses(picture);
    context.restore();
    this.paintAxes(picture);
    const coarse = !close && (x(level.width) - x(0) > 4 || level.merged * rowHeight > 4) ? level : null;
    this.tell(shown, close, coarse);
  }

  paintShares({ context, room, rowHeight, gap, colours }, level) {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const ratio = devicePixelRatio || 1;
    const columns = Math.max(1, Math.round(room.width * ratio));
    const lines = Math.max(1, Math.round(room.height * ratio));
    const image = new ImageData(columns, lines);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(pixel(colours.ground));
    const per = rowHeight * ratio;
    const bands = per >= 1
      ? Array.from({ length: last - first }, (_, i) => [Math.round(i * per), Math.max(Math.round(i * per) + 1, Math.round((i + 1) * per) - gap * ratio), first + i, first + i + 1])
      : Array.from({ length: lines }, (_, line) => [line, line + 1, first + line / per, first + Math.max((line + 1) / per, line / per + 1e-6)]);
    const step = (to - from) / columns;
    const shares = new Float32Array(data.planes * columns);
    const tones = colours.classes.map(pixel);
    const waiting = data.planes - 1;
    const own = Array.from(level.present);
    let above = null;
    for (const [top, bottom, begin, end] of bands) {
      // Rows of the same cells look the same.
      const cell = `${Math.floor(begin / level.merged)} ${Math.ceil(end / level.merged)}`;
      if (cell === above && bottom - top === 1) {
        pixels.copyWithin(top * columns, (top - 1) * columns, top * columns);
        continue;
      }
      above = cell;
      data.shares(level, from, step, columns, begin, end, shares);
      if (rowHeight < STACKED) {
        for (let column = 0; column < columns; column++) pixels[top * columns + column] = mixture(colours, own, shares, column, columns);
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

  paintCalls({ context, x, y, rowHeight, gap, colours }) {
    const { data } = this;
    const { from, to, first, last } = this.window;
    const { enter, leave, position, classes } = data.calls;
    const tones = colours.classes.map(([r, g, b]) => `rgb(${r} ${g} ${b})`);
    const labels = [];
    for (let row = first; row < last; row++) {
      for (let i = data.rowOf[row]; i < data.rowOf[row + 1] && enter[i] <= to; i++) {
        if (leave[i] < from) continue;
        const left = Math.max(GUTTER, x(enter[i]));
        const wide = Math.min(this.width, x(leave[i])) - left;
        context.fillStyle = tones[classes[position[i]]];
        context.fillRect(left, y(row), Math.max(0.5, wide - (wide > 3 ? 0.5 : 0)), rowHeight - gap);
        if (rowHeight >= 15 && wide > 34) labels.push([i, row, left, wide]);
      }
    }
    // A call that others are in has its name only where it shows.
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [i, row, left, wide] of labels) {
      const inner = i + 1 < data.rowOf[row + 1] && enter[i + 1] < leave[i] ? Math.min(this.width, x(enter[i + 1])) : left + wide;
      if (inner - left < 34) continue;
      // A wait at its begin has the name already.
      if (this.layers.waits && classes[position[i]] !== 0 && data.waitAt(row, enter[i]) >= 0) continue;
      context.fillStyle = readable(colours.classes[classes[position[i]]]);
      context.save();
      context.beginPath();
      context.rect(left, y(row), inner - left - 3, rowHeight);
      context.clip();
      context.fillText(data.callName(position[i]), left + 4, y(row) + rowHeight / 2);
      context.restore();
    }
  }

  paintWaits({ context, x, y, rowHeight, gap }) {
    const { location, position, begin, waiting } = this.data.waits;
    const { from, to, first, last } = this.window;
    const colour = css("--time-waiting");
    const hatch = this.hatch(colour);
    const labels = [];
    let painted = 0;
    for (let i = 0; i < begin.length && painted < WAITS; i++) {
      if (location[i] < first || location[i] >= last || begin[i] > to || begin[i] + waiting[i] < from) continue;
      const left = x(begin[i]);
      const wide = x(begin[i] + waiting[i]) - left;
      if (wide < 1.5 && i !== this.selected) continue;
      painted++;
      context.fillStyle = hatch;
      context.fillRect(left, y(location[i]), wide, rowHeight - gap);
      if (rowHeight >= 15 && wide > 60) labels.push([i, Math.max(GUTTER, left), Math.min(this.width, left + wide)]);
      if (rowHeight >= 8 && wide >= 4) {
        context.strokeStyle = colour;
        context.lineWidth = 1;
        context.strokeRect(left + 0.5, y(location[i]) + 0.5, wide - 1, rowHeight - gap - 1);
      }
    }
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [i, left, right] of labels) {
      const text = this.data.callName(position[i]);
      const wide = context.measureText(text).width;
      if (wide + 16 > right - left) continue;
      context.fillStyle = colour;
      context.fillRect(left + 4, y(location[i]) + rowHeight / 2 - 8, wide + 8, 16);
      context.fillStyle = readable(parseColour(colour));
      context.fillText(text, left + 8, y(location[i]) + rowHeight / 2);
    }
    if (this.selected >= 0) {
      const i = this.selected;
      context.strokeStyle = css("--ink");
      context.lineWidth = 2;
      context.strokeRect(x(begin[i]) - 1, y(location[i]) - 1, Math.max(3, x(begin[i] + waiting[i]) - x(begin[i])) + 2, Math.max(3, rowHeight - gap) + 2);
    }
    return painted;
  }

  hatch(colour) {
    if (this.hatched?.colour === colour) return this.hatched.pattern;
    const tile = make("canvas", { width: 8, height: 8 });
    const context = tile.getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 8, 8);
    context.strokeStyle = "rgb(255 255 255 / 0.4)";
    context.lineWidth = 2;
    for (const shift of [-8, 0, 8]) {
      context.beginPath();
      context.moveTo(shift - 1, 9);
      context.lineTo(shift + 9, -1);
      context.stroke();
    }
    this.hatched = { colour, pattern: context.createPattern(tile, "repeat") };
    return this.hatched.pattern;
  }

  paintPath({ context, x, y, rowHeight }) {
    const { location, from, to } = this.data.path;
    const window = this.window;
    // Below the names of calls, where there are any.
    const at = (row) => y(row) + Math.max(0.5, rowHeight - 1) * (rowHeight >= 15 ? 0.85 : 0.5);
    context.lineJoin = "round";
    context.beginPath();
    for (let i = 0; i < location.length; i++) {
      if (from[i] > window.to || to[i] < window.from) continue;
      const before = i > 0 && to[i - 1] >= window.from ? location[i - 1] : location[i];
      context.moveTo(x(from[i]), at(before));
      context.lineTo(x(from[i]), at(location[i]));
      context.lineTo(x(to[i]), at(location[i]));
    }
    for (const [colour, wide] of [[css("--card"), 5], [css("--path"), 2.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.stroke();
    }
  }

  // The most costly of those that are here; none if that would be but a small part.
  paintMessages(picture) {
    const { first, last, from, to } = this.window;
    const here = [];
    for (const [{ from_location: source, to_location: target, start, end }, what] of this.data.arrows) {
      for (let i = 0; i < start.length; i++) {
        if (start[i] > to || end[i] < from || source[i] === target[i]) continue;
        if ((source[i] < first || source[i] >= last) && (target[i] < first || target[i] >= last)) continue;
        here.push([[start[i], source[i]], [end[i], target[i]], what === "transfer"]);
      }
    }
    const drawn = here.length > 3 * ARROWS ? [] : here.slice(0, ARROWS);
    for (const [start, end, dashed] of drawn) this.arrow(picture, start, end, css("--message"), dashed);
    return { arrows: drawn.length, here: here.length };
  }

  paintCauses(picture) {
    const { waits } = this.data;
    const { from, to, first, last } = this.window;
    let drawn = 0;
    for (let i = 0; i < waits.begin.length && drawn < ARROWS; i++) {
      const cause = waits.cause_location[i];
      const end = waits.begin[i] + waits.waiting[i];
      if (cause < 0 || Number.isNaN(waits.cause_time[i]) || cause === waits.location[i]) continue;
      if (i !== this.selected) {
        if (waits.begin[i] > to || end < from || waits.location[i] < first || waits.location[i] >= last) continue;
        if (picture.x(end) - picture.x(waits.begin[i]) < 6) continue;
      }
      drawn++;
      this.arrow(picture, [waits.cause_time[i], cause], [end, waits.location[i]], css("--bad"), false, i === this.selected ? 2.5 : 1.25);
    }
  }

  arrow({ context, x, y, rowHeight }, [start, source], [end, target], colour, dashed, wide = 1) {
    const from = { x: x(start), y: y(source + 0.5) };
    const to = { x: x(end), y: y(target + 0.5) };
    const down = to.y > from.y;
    from.y += (down ? 0.3 : -0.3) * rowHeight;
    to.y += (down ? -0.45 : 0.45) * rowHeight;
    const angle = Math.atan2(to.y - from.y, to.x - from.x);
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = wide;
    context.setLineDash(dashed ? [5, 3] : []);
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(to.x, to.y);
    for (const turn of [-0.4, 0.4]) context.lineTo(to.x - 7 * Math.cos(angle + turn), to.y - 7 * Math.sin(angle + turn));
    context.fill();
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
      if (middle < this.height - 5) context.fillText(data.name(row), room.x - 8, middle);
    }
    context.textAlign = "center";
    const step = niceStep((to - from) / Math.max(2, room.width / 130));
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
    this.where.textContent = `${this.clock(from)} to ${this.clock(to)} (${seconds(to - from)})${rows}`;
    this.canvas.setAttribute("aria-label", `${this.rows} locations from ${this.clock(from)} to ${this.clock(to)}`);
  }

  // A time with as many digits as the window needs.
  clock(time, step = (this.window.to - this.window.from) / 1000) {
    const places = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step || 1))));
    return `${time.toFixed(places)} s`;
  }

  // What is not in the picture.
  tell({ arrows, here }, close, coarse) {
    const { totals, waits, messages, transfers, path, calls } = this.data;
    const left = [];
    const some = (name, kept, what) => {
      if (kept < totals[name]) left.push(`${kept.toLocaleString("en-US")} of ${plural(totals[name], what)}`);
    };
    some("waits", waits.begin.length, "wait");
    some("messages", messages.start.length, "message");
    some("transfers", transfers.start.length, "transfer");
    some("path", path.location.length, "stretch");
    const notes = [];
    if (arrows < here) {
      notes.push(arrows ? `${arrows} of ${here} arrows here are drawn, the most costly` : `zoom in to see ${plural(here, "arrow")}`);
    }
    if (coarse) notes.push(`shares of ${seconds(coarse.width)}${coarse.merged > 1 ? ` and ${coarse.merged} locations` : ""} each`);
    if (left.length) notes.push(`single things in this file: the largest ${left.join(", ")}`);
    if (!calls.location.length && totals.calls) notes.push(`no single calls (${counted(totals.calls)} are too many)`);
    this.left.textContent = notes.join("; ");
    this.left.dataset.close = String(close);
  }

  // The whole run in a strip, with the window in it.
  paintStrip() {
    const { data, width } = this;
    const tones = this.colours().classes.map(([r, g, b]) => `rgb(${r} ${g} ${b})`);
    const key = `${width} ${devicePixelRatio} ${tones.join()}`;
    if (this.stripPicture?.key !== key) this.stripPicture = { key, canvas: this.wholeRun(width - GUTTER, tones) };
    const context = fitCanvas(this.strip, width, STRIP);
    context.drawImage(this.stripPicture.canvas, GUTTER, 0, width - GUTTER, STRIP);
    context.fillStyle = css("--soft");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillText("whole run", GUTTER - 8, STRIP / 2 + 4);
    const x = (time) => GUTTER + (time / data.length) * (width - GUTTER);
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
    const step = data.length / columns;
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

  stripTime(event) {
    const box = this.strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left - GUTTER) / (box.width - GUTTER))) * this.data.length;
  }

  stripGrab(event) {
    this.strip.setPointerCapture(event.pointerId);
    this.stripFrom = this.stripTime(event);
    const { from, to, first, last } = this.window;
    const half = (to - from) / 2;
    if (to - from < this.data.length) this.look(this.stripFrom - half, this.stripFrom + half, first, last);
  }

  stripMove(event) {
    if (this.stripFrom === null || this.stripFrom === undefined) return;
    const here = this.stripTime(event);
    if (Math.abs(here - this.stripFrom) < this.data.length * 0.004) return;
    this.look(Math.min(here, this.stripFrom), Math.max(here, this.stripFrom), this.window.first, this.window.last);
  }
}

// The part of the address for a wait in its surroundings.
function timelineLink(enter, leave) {
  const room = 0.6 * (leave - enter);
  return address("timeline", { from: Math.max(0, enter - room).toFixed(9), to: (leave + room).toFixed(9) });
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
}

function parseColour(text) {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

// The mean of the colours of a column, as a pixel: where there is no room to show shares one by one.
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
function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function lighter(pixel) {
  const part = (shift) => Math.min(255, ((pixel >> shift) & 255) + 70) << shift;
  return ((255 << 24) | part(16) | part(8) | part(0)) >>> 0;
}

function readable([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? "#1a1a1a" : "#ffffff";
}
