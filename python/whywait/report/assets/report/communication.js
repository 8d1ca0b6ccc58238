// Communication: a matrix of ranks or nodes, the heaviest pairs, every rank on its topology, and message sizes.

import { HeatMap, fitCanvas } from "../charts.js";
import { css, scaleColors } from "../color.js";
import { columnBlock, documentBlock, hasBlock } from "../data.js";
import { choice, fill, hiddenHeading, make, tip } from "../dom.js";
import { percent, quantity, seconds } from "../format.js";
import { bar, ranking } from "../ranking.js";
import { addView } from "../sections.js";

const MEASURES = [
  ["bytes", "Bytes", "Bytes of messages and one-sided transfers"], ["messages", "Messages", "Number of messages and one-sided transfers"],
  ["time", "In flight", "Time from send to receive"], ["waiting", "Waiting", "How long a rank waits for another, in all wait states"],
];
const PARTS = {
  bytes: ["bytes", "transfer_bytes"], messages: ["messages", "transfers"], time: ["time", "transfer_time"], waiting: ["waiting"],
};
// The names of a measure at either end of a pair.
const ENDS = {
  bytes: ["sent", "received"], messages: ["sent", "received"], time: ["sent", "received"], waiting: ["by the rank", "for the rank"],
};
const SHARES = { bytes: "bytes", messages: "messages", time: "time in flight", waiting: "waiting" };
const UNITS = { bytes: "bytes", messages: "occ", time: "sec", waiting: "sec" };
const MARGIN = 44;
// The topology that Score-P writes for every program.
const MADE_UP = "Process x Thread";

// The number of cells between two labels: at least `least`, and such that labels are round numbers.
function roundStep(least, width) {
  if (width > 1 && Number.isInteger(Math.log2(width))) return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
  const power = 10 ** Math.max(0, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

// The range of a size class; its limits are powers of two.
function sizeText({ least, below }) {
  const whole = (value) => quantity(value, "bytes").replace(/\.0+ /, " ");
  if (below === 1) return "0 B";
  return least < 1024 ? `${least} to ${below - 1} B` : `${whole(least)} to ${whole(below)}`;
}

export class Communication {
  constructor(model) {
    this.model = model;
    /** @type {any} */
    this.facts = null;
    // Tables of pairs of ranks and of nodes, the table of ranks, and the pairs shown; null if missing.
    /** @type {any} */
    this.ofRanks = null;
    /** @type {any} */
    this.ofNodes = null;
    /** @type {any} */
    this.each = null;
    /** @type {Record<string, any>} */
    this.pairs = {};
    this.by = "bytes";
    this.of = "rank";
    this.end = "from";
    this.node = make("section", { class: "overview communication", "aria-label": "Communication" });
  }

  async follow() {
    if (!this.facts) {
      const there = (name) => (hasBlock(name) ? columnBlock(name) : null);
      [this.facts, this.ofRanks, this.ofNodes, this.each] = await Promise.all([
        documentBlock("communication"), columnBlock("communication-pairs"), there("communication-nodes"), there("communication-ranks")]);
      this.pairs = this.ofRanks;
      this.build();
    }
    this.draw();
  }

  build() {
    const used = MEASURES.filter(([name]) => this.values(name).some((value) => value > 0));
    this.by = used[0]?.[0] ?? "bytes";
    this.chooser = choice("What the matrix shows", used, this.by, (by) => { this.by = by; this.fillTables(); this.draw(); this.showRanks(); });
    this.sides = this.ofNodes && choice("What a row of the matrix is", [["rank", "Ranks"], ["node", "Nodes", "Combine the ranks of each node"]], this.of,
      (of) => { this.of = of; this.pairs = of === "node" ? this.ofNodes : this.ofRanks; this.fillTables(); this.draw(); });
    this.canvas = make("canvas", { role: "img", onmousemove: (event) => this.hover(event), onmouseleave: () => tip.hide() });
    this.frame = make("div", { class: "matrix" }, this.canvas);
    this.legend = make("p", { class: "hint" });
    this.table = make("div", { class: "wide" });
    fill(this.node, hiddenHeading("Communication"),
      make("div", { class: "beside" }, make("section", { class: "card" }, make("header", { class: "toolbar" }, make("h2", {}, "Who communicates with whom"), this.sides?.node, this.chooser.node), this.frame, this.legend),
        this.each && this.ranks()),
      make("section", { class: "card" }, make("h2", {}, "Top pairs"), this.table),
      this.facts.sizes.length > 0 && make("section", { class: "card" }, make("h2", {}, "Message sizes"), this.sizes()));
    this.fillTables();
    this.showRanks();
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  // All ranks, on the topology of the program if it has one.
  ranks() {
    const { ranks, topologies } = this.facts;
    const numbers = Array.from({ length: ranks }, (_, rank) => rank);
    this.map = new HeatMap({
      places: { rank: numbers, thread: numbers.map(() => 0) }, placeCount: ranks, shown: numbers, threaded: false, topologies, placeName: (rank) => `rank ${rank}`,
    }, () => {}, 1 + topologies.findIndex(({ name }) => name !== MADE_UP));
    this.ends = choice("Which side of the pairs", [["from", ""], ["to", ""]], this.end, (end) => { this.end = end; this.showRanks(); });
    this.map.node.querySelector("header").append(this.ends.node);
    return make("section", { class: "card ranks" }, this.map.node);
  }

  showRanks() {
    if (!this.map) return;
    const [, text] = MEASURES.find(([name]) => name === this.by) ?? [];
    [...this.ends.node.children].forEach((button, i) => { button.textContent = `${text} ${ENDS[this.by][i]}`; });
    this.map.show(this.each[`${this.by}_${this.end}`], (value) => quantity(value, UNITS[this.by]), null);
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
    const { block, ranks, nodes } = this.facts;
    if (this.of === "node") return nodes[number];
    return this.name(number * block, Math.min(ranks, (number + 1) * block) - 1);
  }

  get cells() {
    return this.of === "node" ? this.facts.nodes.length : Math.ceil(this.facts.ranks / this.facts.block);
  }

  repaint() {
    this.draw();
  }

  draw() {
    if (!this.frame?.clientWidth) return;
    const size = Math.min(this.frame.clientWidth, 620);
    this.side = (size - MARGIN) / this.cells;
    const context = fitCanvas(this.canvas, size, size);
    const values = this.values(this.by);
    const most = Math.max(...values, 0);
    const colors = scaleColors();
    const gap = this.side > 5 ? 1 : 0;
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
      context.fillRect(left, top, Math.max(1, Math.round(MARGIN + (column + 1) * this.side) - left - gap), Math.max(1, Math.round(MARGIN + (row + 1) * this.side) - top - gap));
    });
    context.fillStyle = css("--soft");
    context.font = "12px system-ui, sans-serif";
    const width = this.of === "node" ? 1 : this.facts.block;
    const across = `${this.by === "waiting" ? "for" : "to"} ${this.of} →`;
    context.fillText(across, MARGIN, 14);
    const every = roundStep(24 / this.side, width);
    context.textAlign = "right";
    for (let i = 0; i < this.cells; i += every) {
      context.fillText(String(i * width), MARGIN - 6, MARGIN + (i + 0.5) * this.side + 4);
    }
    context.textAlign = "center";
    const wide = roundStep(44 / this.side, width);
    for (let i = 0; i < this.cells; i += wide) context.fillText(String(i * width), MARGIN + (i + 0.5) * this.side, MARGIN - 6);
    const [, , text] = MEASURES.find(([name]) => name === this.by) ?? [];
    this.canvas.setAttribute("aria-label", `${text}, by pairs of ${this.of}s`);
    this.legend.textContent = `${text}; maximum: ${quantity(most, UNITS[this.by])}. ${this.by === "waiting" ? "Rows wait, columns are waited for" : "Rows send, columns receive"}`
      + `${width > 1 ? `; each cell is ${this.facts.block} × ${this.facts.block} ranks` : ""}.`;
    this.node.dataset.shown = this.by;
    this.node.dataset.of = this.of;
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
    const rows = (this.of === "node" ? this.facts.top_nodes : this.facts.top)[this.by];
    const name = (row, side) => (this.of === "node" ? row[side === "rank" ? "node" : "peer_node"] : this.name(row[side], row[`last_${side}`]));
    // Messages go from the first rank to the second, for which the first one waits.
    const [heads, columns] = this.by === "waiting" ? [["Waits", "For"], ["Messages to it", "Bytes to it", "In flight", "Waiting"]]
      : [["From", "To"], ["Messages", "Bytes", "In flight", "Waits for it"]];
    fill(this.table, ranking("plain", [...heads, ...columns, `Share of ${SHARES[this.by]}`], rows.map((row) => [
      name(row, "rank"), name(row, "peer"), (row.messages + row.transfers).toLocaleString("en-US"), quantity(row.bytes + row.transfer_bytes, "bytes"),
      seconds(row.time + row.transfer_time), seconds(row.waiting), percent(row.share),
    ]), (i) => i > 1));
  }

  sizes() {
    const { sizes } = this.facts;
    const most = Math.max(...sizes.map((row) => row.count));
    return make("div", { class: "wide" }, ranking("plain", ["Size", "Kind", "Count", "", "Bytes", "Average in flight"], sizes.map((row) => [
      sizeText(row), row.kind, row.count.toLocaleString("en-US"), bar(row.count / most), quantity(row.bytes, "bytes"), seconds(row.time / row.count),
    ]), (i) => [2, 4, 5].includes(i)));
  }
}

addView({ name: "communication", title: "Communication", key: "m", order: 50, exists: () => hasBlock("communication"), View: Communication });
