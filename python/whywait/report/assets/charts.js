// Pictures of values over places: a heat map and box plots.

import { css, lightTextOn, scaleColors } from "./color.js";
import { fill, make, tip } from "./dom.js";

export function fitCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

const axisName = (topology, axis) => topology.axes[axis] || `axis ${axis}`;

// Layouts of places: each returns columns, rows, and the cell of every place (-1: not shown).
function layouts(model) {
  const { rank, thread } = model.places;
  const count = model.placeCount;
  const shown = new Set(model.shown);
  const found = [];
  const processes = new Set(rank).size;
  if (model.threaded && processes > 1) {
    const rows = new Map([...new Set(rank)].map((number, at) => [number, at]));
    const columns = thread.reduce((most, number) => Math.max(most, number), 0) + 1;
    const filled = new Int32Array(count);
    const used = new Map();
    for (let place = 0; place < count; place++) {
      if (!shown.has(place)) { filled[place] = -1; continue; }
      // Locations other than threads share thread numbers, so they are placed to the right of the threads.
      let column = thread[place];
      const row = rows.get(rank[place]);
      while (used.has(`${row} ${column}`)) column++;
      used.set(`${row} ${column}`, place);
      filled[place] = column;
    }
    const width = Math.max(columns, filled.reduce((most, column) => Math.max(most, column + 1), 0));
    found.push({
      name: "Rank × thread", columns: width, rows: rows.size,
      cell: Array.from(filled, (column, place) => (column < 0 ? -1 : rows.get(rank[place]) * width + column)),
    });
  }
  const order = new Array(count).fill(-1);
  model.shown.forEach((place, i) => { order[place] = i; });
  found.push({ name: "Rank order", wrap: true, cell: order });
  for (const topology of model.topologies) {
    const { sizes } = topology;
    // The last two dimensions form a plane; planes are placed side by side, each below a row for its name.
    const across = sizes.at(-1) ?? 1;
    const down = sizes.at(-2) ?? 1;
    const planes = sizes.slice(0, -2).reduce((product, size) => product * size, 1);
    const beside = Math.max(1, Math.ceil(Math.sqrt((planes * down) / across)));
    const gap = planes > 1 ? 1 : 0;
    const columns = beside * (across + gap) - gap;
    const rows = Math.ceil(planes / beside) * (down + gap);
    const cell = new Array(count).fill(-1);
    const titles = new Map();
    topology.places.forEach((place, i) => {
      const at = topology.at[i];
      const plane = at.slice(0, -2).reduce((sum, step, axis) => sum * sizes[axis] + step, 0);
      const corner = Math.floor(plane / beside) * (down + gap) * columns + (plane % beside) * (across + gap);
      cell[place] = corner + (gap + (at.length > 1 ? at.at(-2) : 0)) * columns + at.at(-1);
      if (gap) titles.set(corner, at.slice(0, -2).map((step, axis) => `${axisName(topology, axis)} = ${step}`).join(", "));
    });
    const label = topology.name || "Topology";
    found.push({ name: `${label} (${sizes.join(" × ")})`, columns, rows, cell, at: topology, titles, across });
  }
  return found;
}

export class HeatMap {
  // `first`: the initial layout.
  constructor(model, choose, first = 0) {
    this.model = model;
    this.choose = choose;
    this.layouts = layouts(model);
    /** @type {ArrayLike<number> & Iterable<number> | any} */
    this.values = null;
    /** @type {(value: number) => string} */
    this.text = String;
    /** @type {number[] | null} */
    this.marked = null;
    this.layout = this.layouts[first];
    this.fromZero = true;
    this.canvas = make("canvas", {
      role: "img", onmousemove: (event) => this.hover(event), onmouseleave: () => tip.hide(),
      onclick: (event) => { const place = this.placeAt(event); if (place >= 0) this.choose(place); },
    });
    this.frame = make("div", { class: "map" }, this.canvas);
    this.legend = make("div", { class: "legend" });
    const arrange = make("select", {
      "aria-label": "Arrangement of the map", onchange: () => { this.layout = this.layouts[arrange.value]; this.draw(); },
    }, this.layouts.map(({ name }, i) => make("option", { value: i, selected: i === first }, name)));
    const scale = make("select", {
      "aria-label": "Range of the colors", onchange: () => { this.fromZero = scale.value === "zero"; this.draw(); },
    }, make("option", { value: "zero" }, "colors from zero"), make("option", { value: "least" }, "colors from the minimum"));
    this.node = make("section", { class: "detail", "aria-label": "Heat map" },
      make("header", {}, make("h2", {}, "Over ranks"), this.layouts.length > 1 && arrange, scale),
      this.frame, this.legend);
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  // `marked`: the places of the selected node of the system tree, or null for all.
  show(values, text, marked) {
    Object.assign(this, { values, text, marked });
    this.draw();
  }

  grid(width, height) {
    const { layout } = this;
    if (!layout.wrap) return layout;
    const values = this.model.shown;
    // Cells as square as the space allows, slightly wider than high.
    const near = Math.max(1, Math.min(values.length, Math.ceil(Math.sqrt((values.length * width) / height / 1.4))));
    // Prefer a width that fills all rows: an incomplete row looks like missing data.
    let columns = near;
    for (let wide = near; wide <= Math.min(values.length, 1.7 * near); wide++) {
      if (values.length % wide === 0) { columns = wide; break; }
    }
    return { columns, rows: Math.ceil(values.length / columns), cell: layout.cell };
  }

  draw() {
    const { values, text } = this;
    const width = this.frame.clientWidth;
    const height = this.frame.clientHeight;
    if (!values || width < 10 || height < 10) return;
    const context = fitCanvas(this.canvas, width, height);
    let least = Infinity;
    let most = -Infinity;
    let sum = 0;
    for (const place of this.model.shown) {
      const value = values[place];
      least = Math.min(least, value);
      most = Math.max(most, value);
      sum += value;
    }
    const from = this.fromZero ? Math.min(0, least) : least;
    const share = (value) => (most > from ? (value - from) / (most - from) : 0);
    const { columns, rows, cell } = this.grid(width, height);
    const size = { x: Math.min(96, width / columns), y: Math.min(64, height / rows) };
    const gap = size.x > 6 && size.y > 6 ? 1 : 0;
    // Align cells to pixels: otherwise antialiased edges appear as a bright grid.
    const edge = (start, step, at) => Math.round(start + step * at);
    const left = Math.max(0, (width - size.x * columns) / 2);
    const top = Math.max(0, (height - size.y * rows) / 2);
    this.drawn = { columns, rows, size, left, top, places: new Map() };
    const labelled = size.x >= 30 && size.y >= 18;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const colors = scaleColors();
    for (const place of this.model.shown) {
      const [value, at] = [values[place], cell[place]];
      if (at < 0) continue;
      this.drawn.places.set(at, place);
      const x = left + (at % columns) * size.x;
      const y = top + Math.floor(at / columns) * size.y;
      const part = share(value);
      context.fillStyle = colors[Math.round(255 * part)];
      const [column, row] = [at % columns, Math.floor(at / columns)];
      const [west, north] = [edge(left, size.x, column), edge(top, size.y, row)];
      context.fillRect(west, north, Math.max(1, edge(left, size.x, column + 1) - west - gap), Math.max(1, edge(top, size.y, row + 1) - north - gap));
      if (labelled) {
        context.fillStyle = lightTextOn(part) ? "#fff" : "#1a1a1a";
        context.fillText(this.shortName(place), x + size.x / 2, y + size.y / 2);
      }
    }
    this.drawTitles(context, left, top, size, columns);
    if (this.marked && this.marked.length < values.length) {
      context.strokeStyle = css("--accent");
      context.lineWidth = 2;
      for (const place of this.marked) {
        const at = cell[place];
        if (at >= 0) {
          context.strokeRect(left + (at % columns) * size.x + 1, top + Math.floor(at / columns) * size.y + 1,
            Math.max(1, size.x - gap - 2), Math.max(1, size.y - gap - 2));
        }
      }
    }
    this.canvas.setAttribute("aria-label", `${this.model.shown.length} places, from ${text(least)} to ${text(most)}`);
    fill(this.legend,
      make("span", {}, text(from)),
      make("i", { style: { background: `linear-gradient(90deg, ${colors.filter((_, i) => i % 15 === 0).join(",")})` } }),
      make("span", {}, text(most)),
      make("span", { class: "mean" }, `mean ${text(sum / this.model.shown.length)}`));
  }

  // The names of planes, where they fit.
  drawTitles(context, left, top, size, columns) {
    const { titles, across } = this.layout;
    if (!titles?.size || size.y < 9) return;
    context.fillStyle = css("--soft");
    context.font = `${Math.min(12, Math.floor(size.y))}px system-ui, sans-serif`;
    for (const [corner, title] of titles) {
      if (context.measureText(title).width > across * size.x) continue;
      context.fillText(title, left + (corner % columns + across / 2) * size.x, top + (Math.floor(corner / columns) + 0.55) * size.y);
    }
  }

  shortName(place) {
    const { rank, thread } = this.model.places;
    if (rank[place] < 0) return "–";
    return this.model.threaded ? `${rank[place]}.${thread[place]}` : String(rank[place]);
  }

  placeAt(event) {
    if (!this.drawn) return -1;
    const box = this.canvas.getBoundingClientRect();
    const { columns, rows, size, left, top, places } = this.drawn;
    const column = Math.floor((event.clientX - box.left - left) / size.x);
    const row = Math.floor((event.clientY - box.top - top) / size.y);
    if (column < 0 || column >= columns || row < 0 || row >= rows) return -1;
    return places.get(row * columns + column) ?? -1;
  }

  hover(event) {
    const place = this.placeAt(event);
    if (place < 0) { tip.hide(); return; }
    const topology = this.layout.at;
    const at = topology && topology.at[topology.places.indexOf(place)];
    tip.show(event, make("b", {}, this.model.placeName(place)), at && ` at (${at.map((step, axis) => `${axisName(topology, axis)} ${step}`).join(", ")})`, make("br"),
      this.text(this.values[place]));
  }
}

// The five-number summary of a distribution, and the places of its extremes.
function distribution(values) {
  const order = Float64Array.from(values).sort();
  const at = (share) => {
    const position = share * (order.length - 1);
    const low = order[Math.floor(position)];
    return low + (order[Math.ceil(position)] - low) * (position % 1);
  };
  return {
    least: at(0), quarter: at(0.25), half: at(0.5), threeQuarters: at(0.75), most: at(1),
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    leastAt: values.indexOf(order[0]), mostAt: values.indexOf(order.at(-1)),
  };
}

// The selected row also shows every place as a dot, if they are few enough.
const DOTS = 512;

export class BoxPlots {
  constructor(choose) {
    this.body = make("div", { class: "boxes" });
    this.node = make("section", { class: "detail", "aria-label": "Box plots" },
      make("header", {}, make("h2", {}, "Spread over ranks"),
        make("span", { class: "hint" }, "min · quartiles · max, ● mean")),
      this.body);
    this.choose = choose;
  }

  // Each of `rows` is { label, hint, values, call }.
  show(rows, text, placeName) {
    const boxes = rows.map((row) => ({ ...row, ...distribution(row.values) }));
    const from = Math.min(0, ...boxes.map((box) => box.least));
    const to = Math.max(...boxes.map((box) => box.most), 0);
    const share = (value) => (to > from ? (100 * (value - from)) / (to - from) : 0);
    fill(this.body, boxes.map((box, i) => make("button", {
      type: "button", class: i ? "box" : "box whole", title: box.hint, onclick: () => this.choose(box.call),
      onmousemove: (event) => tip.show(event, make("b", {}, box.label), make("table", {},
        [["most", `${text(box.most)} on ${placeName(box.mostAt)}`], ["third quartile", text(box.threeQuarters)],
          ["median", text(box.half)], ["first quartile", text(box.quarter)],
          ["least", `${text(box.least)} on ${placeName(box.leastAt)}`], ["mean", text(box.mean)]]
          .map(([name, value]) => make("tr", {}, make("th", {}, name), make("td", {}, value))))),
      onmouseleave: () => tip.hide(),
    },
      make("span", { class: "name" }, box.label),
      make("span", { class: "plot" },
        make("i", { class: "whisker", style: { left: `${share(box.least)}%`, right: `${100 - share(box.most)}%` } }),
        make("i", { class: "quartiles", style: { left: `${share(box.quarter)}%`, right: `${100 - share(box.threeQuarters)}%` } }),
        make("i", { class: "median", style: { left: `${share(box.half)}%` } }),
        make("i", { class: "mean", style: { left: `${share(box.mean)}%` } })),
      i === 0 && box.values.length <= DOTS && make("span", { class: "dots" },
        Array.from(box.values, (value) => make("i", { style: { left: `${share(value)}%` } }))))),
    boxes.length > 0 && make("div", { class: "axis" }, make("span", {}, text(from)), make("span", {}, text(to))));
  }
}
