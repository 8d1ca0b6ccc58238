// What the run does with files.

import { make } from "../dom.js";
import { percent, plural, quantity, seconds } from "../format.js";
import { afterFirst, ranking } from "../ranking.js";
import { addBlockCard, callLink } from "./cards.js";

const bytesOf = (value) => quantity(value, "bytes");
function operations(one) {
  return [one.count.toLocaleString("en-US"), one.bytes_read ? bytesOf(one.bytes_read) : "–", one.bytes_written ? bytesOf(one.bytes_written) : "–"];
}

function filesTable({ files }) {
  const rate = (row) => {
    const moved = row.bytes_read + row.bytes_written;
    return moved && row.in_calls ? `${bytesOf(moved / row.in_calls)}/s` : "–";
  };
  return ranking("", ["File", "Operations", "Read", "Written", "Time", "Rate"],
    files.map((row) => [row.file ?? "(not defined)", ...operations(row), seconds(row.in_calls), rate(row)]), afterFirst);
}

function callpathsTable(model, { callpaths }) {
  return ranking("", ["Call path", "Operations", "Read", "Written", "Time", "Waiting"], callpaths.map((row) => [
    row.callpath ? callLink(model, "time", row.callpath_id) : "(outside)", ...operations(row), seconds(row.time), row.waiting ? seconds(row.waiting) : "–",
  ]), afterFirst);
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

addBlockCard(45, "io", "What is done with files", filesText);
