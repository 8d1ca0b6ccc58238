// What the run does with files.

import { documentBlock, hasBlock } from "../data.js";
import { fill, make } from "../dom.js";
import { percent, plural, quantity, seconds } from "../format.js";
import { addCard, callLink } from "./cards.js";

const bytesOf = (value) => quantity(value, "bytes");
const numericCell = (...content) => make("td", { class: "number-of" }, ...content);

function fileHeads(first, ...others) {
  return make("thead", {}, make("tr", {}, make("th", {}, first), others.map((name) => make("th", { class: "number-of" }, name))));
}

function operationCells(one) {
  return [numericCell(one.count.toLocaleString("en-US")), numericCell(one.bytes_read ? bytesOf(one.bytes_read) : "–"), numericCell(one.bytes_written ? bytesOf(one.bytes_written) : "–")];
}

function filesTable({ files: rows }) {
  return make("table", { class: "ranking" }, fileHeads("File", "Operations", "Read", "Written", "Time", "Rate"),
    make("tbody", {}, rows.map((row) => {
      const moved = row.bytes_read + row.bytes_written;
      return make("tr", {}, make("td", {}, row.file ?? "(not defined)"), operationCells(row), numericCell(seconds(row.in_calls)),
        numericCell(moved && row.in_calls ? `${bytesOf(moved / row.in_calls)}/s` : "–"));
    })));
}

function callpathsTable(model, { callpaths: rows }) {
  return make("table", { class: "ranking" }, fileHeads("Call path", "Operations", "Read", "Written", "Time", "Waiting"),
    make("tbody", {}, rows.map((row) => make("tr", {},
      make("td", {}, row.callpath ? callLink(model, "time", row.callpath_id) : "(outside)"), operationCells(row),
      numericCell(seconds(row.time)), numericCell(row.waiting ? seconds(row.waiting) : "–")))));
}

function filesText(model, found) {
  const { busiest } = found;
  const waiting = found.waiting ? `, ${seconds(found.waiting)} of it waiting for other ranks` : "";
  const moved = found.count ? ` ${plural(found.count, "operation")} read ${bytesOf(found.bytes_read)} and write ${bytesOf(found.bytes_written)}.` : "";
  const most = busiest && found.ranks > 1 && found.time ? ` Rank ${busiest.rank} spends most: ${percent(busiest.time / found.time)} of it.` : "";
  const more = [[found.more_files, "file"], [found.more_callpaths, "call path"]].filter(([count]) => count).map(([count, what]) => plural(count, `more ${what}`));
  return [
    make("p", { class: "lead" }, `All ranks together spend ${seconds(found.time)} in I/O, ${percent(found.share)} of the time${waiting}.${moved}${most}`),
    found.files.length > 0 && make("div", { class: "wide" }, filesTable(found)),
    found.callpaths.length > 0 && make("div", { class: "wide" }, callpathsTable(model, found)),
    more.length > 0 && make("p", { class: "hint" }, `And ${more.join(" and ")}: `, make("code", {}, "whywait io"), "."),
  ];
}

function filesCard(model) {
  if (!hasBlock("io")) return null;
  const title = make("h2", {}, "What is done with files");
  const node = make("section", { class: "card io" }, title);
  documentBlock("io").then((found) => fill(node, title, filesText(model, found)));
  return node;
}

addCard(45, filesCard);
