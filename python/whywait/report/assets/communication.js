// Who communicates with whom: a matrix of ranks, the heaviest pairs, and how large messages are.

import { fitCanvas } from "./charts.js";
import { css, scaleColors } from "./color.js";
import { columnBlock, documentBlock } from "./data.js";
import { choice, fill, make, tip } from "./dom.js";
import { percent, quantity, seconds } from "./format.js";

const MEASURES = [
  ["bytes", "Bytes", "Bytes of messages and one-sided transfers"], ["messages", "Messages", "Number of messages and one-sided transfers"],
  ["time", "In flight", "Time from send to receive"], ["waiting", "Waiting", "How long a rank waits for another, whatever the wait state"],
];
const PARTS = {
  bytes: ["bytes", "transfer_bytes"], messages: ["messages", "transfers"], time: ["time", "transfer_time"], waiting: ["waiting"],
};
const UNITS = { bytes: "bytes", messages: "occ", time: "sec", waiting: "sec" };
const MARGIN = 44;

export class Communication {
  constructor(model) {
    this.model = model;
    /** @type {any} */
    this.facts = null;
    /** @type {Record<string, any>} */
    this.pairs = {};
    this.by = "bytes";
    this.node = make("section", { class: "overview communication", "aria-label": "Communication" });
  }

  get exists() {
    return document.getElementById("data-communication") !== null;
  }

  async follow() {
    if (!this.exists) {
      fill(this.node, make("p", { class: "opening" }, "This report does not say who communicates with whom: there are no messages, "
        + "or the result was written by an older version or by several processes under MPI."));
      return;
    }
    if (!this.facts) {
      [this.facts, this.pairs] = await Promise.all([documentBlock("communication"), columnBlock("communication-pairs")]);
      this.build();
    }
    this.draw();
  }

  build() {
    const used = MEASURES.filter(([name]) => this.values(name).some((value) => value > 0));
    this.by = used[0]?.[0] ?? "bytes";
    this.chooser = choice("What the matrix shows", used, this.by, (by) => { this.by = by; this.fillTables(); this.draw(); });
    this.canvas = make("canvas", { role: "img", onmousemove: (event) => this.hover(event), onmouseleave: () => tip.hide() });
    this.frame = make("div", { class: "matrix" }, this.canvas);
    this.legend = make("p", { class: "hint" });
    this.table = make("div", { class: "wide" });
    fill(this.node,
      make("section", { class: "card" }, make("header", { class: "toolbar" }, make("h2", {}, "Who communicates with whom"), this.chooser.node), this.frame, this.legend),
      make("section", { class: "card" }, make("h2", {}, "Heaviest pairs"), this.table),
      this.facts.sizes.length > 0 && make("section", { class: "card" }, make("h2", {}, "Message sizes"), this.sizes()));
    this.fillTables();
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  // The values of a measure, by pair.
  values(by) {
    const columns = PARTS[by].map((name) => this.pairs[name]);
    return Array.from(this.pairs.rank, (_, i) => columns.reduce((sum, column) => sum + column[i], 0));
  }

  name(first, last) {
    return first === last ? `rank ${first}` : `ranks ${first}–${last}`;
  }

  block(number) {
    const { block, ranks } = this.facts;
    return this.name(number * block, Math.min(ranks, (number + 1) * block) - 1);
  }

  get cells() {
    return Math.ceil(this.facts.ranks / this.facts.block);
  }

  draw() {
    if (!this.frame?.clientWidth) return;
    const size = Math.min(this.frame.clientWidth, 620);
    this.side = (size - MARGIN) / this.cells;
    const context = fitCanvas(this.canvas, size, size);
    const values = this.values(this.by);
    const most = Math.max(...values, 0);
    const colors = scaleColors();
    this.shown = new Map();
    context.fillStyle = colors[0];
    context.fillRect(MARGIN, MARGIN, size - MARGIN, size - MARGIN);
    values.forEach((value, i) => {
      if (value <= 0) return;
      const [row, column] = [this.pairs.rank[i], this.pairs.peer[i]];
      this.shown.set(row * this.cells + column, i);
      context.fillStyle = colors[Math.max(20, Math.round((255 * value) / most))];
      const left = Math.round(MARGIN + column * this.side);
      const top = Math.round(MARGIN + row * this.side);
      context.fillRect(left, top, Math.max(1, Math.round(MARGIN + (column + 1) * this.side) - left), Math.max(1, Math.round(MARGIN + (row + 1) * this.side) - top));
    });
    context.fillStyle = css("--soft");
    context.font = "12px system-ui, sans-serif";
    const across = this.by === "waiting" ? "for rank →" : "to rank →";
    context.fillText(across, MARGIN, 14);
    const every = Math.max(1, Math.ceil(24 / this.side));
    context.textAlign = "right";
    for (let i = 0; i < this.cells; i += every) {
      context.fillText(String(i * this.facts.block), MARGIN - 6, MARGIN + (i + 0.5) * this.side + 4);
    }
    context.textAlign = "left";
    const wide = Math.max(1, Math.ceil(44 / this.side));
    for (let i = 0; i < this.cells; i += wide) context.fillText(String(i * this.facts.block), MARGIN + i * this.side, MARGIN - 6);
    const [, , text] = MEASURES.find(([name]) => name === this.by) ?? [];
    this.canvas.setAttribute("aria-label", `${text}, by pairs of ranks`);
    this.legend.textContent = `${text}; darkest: ${quantity(most, UNITS[this.by])}. ${this.by === "waiting" ? "Rows wait, columns are waited for" : "Rows send, columns receive"}`
      + `${this.facts.block > 1 ? `; each cell is ${this.facts.block} × ${this.facts.block} ranks` : ""}.`;
    this.node.dataset.shown = this.by;
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - MARGIN) / this.side);
    const row = Math.floor((event.clientY - box.top - MARGIN) / this.side);
    if (row < 0 || column < 0 || row >= this.cells || column >= this.cells) { tip.hide(); return; }
    const i = this.shown.get(row * this.cells + column);
    const lines = i === undefined ? [] : MEASURES.map(([by, text]) => [text, PARTS[by].reduce((sum, name) => sum + this.pairs[name][i], 0), UNITS[by]]);
    tip.show(event, make("b", {}, `${this.block(row)} → ${this.block(column)}`), make("table", {}, lines.map(([text, value, unit]) =>
      make("tr", {}, make("th", {}, text), make("td", {}, quantity(value, unit))))), lines.length === 0 && " nothing");
  }

  fillTables() {
    const rows = this.facts.top[this.by];
    const heads = this.by === "waiting" ? ["Waits", "For"] : ["From", "To"];
    fill(this.table, make("table", { class: "ranking plain" },
      make("thead", {}, make("tr", {}, [...heads, "Messages", "Bytes", "In flight", "Waiting", "Share"].map((name) => make("th", {}, name)))),
      make("tbody", {}, rows.map((row) => make("tr", {},
        make("td", {}, this.name(row.rank, row.last_rank)), make("td", {}, this.name(row.peer, row.last_peer)),
        make("td", {}, (row.messages + row.transfers).toLocaleString("en-US")), make("td", {}, quantity(row.bytes + row.transfer_bytes, "bytes")),
        make("td", {}, seconds(row.time + row.transfer_time)), make("td", {}, seconds(row.waiting)), make("td", {}, percent(row.share)))))));
  }

  sizes() {
    const { sizes } = this.facts;
    const most = Math.max(...sizes.map((row) => row.count));
    return make("div", { class: "wide" }, make("table", { class: "ranking plain" },
      make("thead", {}, make("tr", {}, ["Size", "What", "Count", "", "Bytes", "In flight, in the mean"].map((name) => make("th", {}, name)))),
      make("tbody", {}, sizes.map((row) => make("tr", {},
        make("td", {}, row.below === 1 ? "0 B" : `${quantity(row.least, "bytes")} to ${quantity(row.below - 1, "bytes")}`), make("td", {}, row.kind),
        make("td", {}, row.count.toLocaleString("en-US")),
        make("td", { class: "bar" }, make("i", { style: { width: `${(100 * row.count) / most}%` } })),
        make("td", {}, quantity(row.bytes, "bytes")), make("td", {}, seconds(row.time / row.count)))))));
  }
}
