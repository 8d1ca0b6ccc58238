// Tables of a page: a head for each column, and rows of what its cells show.

import { make } from "./dom.js";
import { percent } from "./format.js";

// Which columns are numbers.
const none = (column) => column < 0;
export const afterFirst = (column) => column > 0;

const numeric = (isNumber) => ({ class: isNumber ? "number-of" : undefined });

export function heads(names, isNumber = none) {
  return make("thead", {}, make("tr", {}, names.map((name, i) => make("th", numeric(isNumber(i)), name))));
}

// `kind` is a further class of the table. A cell may be an element of its own, such as a bar.
export function ranking(kind, names, rows, isNumber = none) {
  const cell = (shown, i) => (shown instanceof HTMLTableCellElement ? shown : make("td", numeric(isNumber(i)), shown));
  return make("table", { class: `ranking ${kind}`.trim() }, heads(names, isNumber),
    make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map(cell)))));
}

// A share as a bar, and as text.
export function bar(share, text = "") {
  return make("td", { class: "bar" }, make("i", { style: { width: `${100 * share}%` } }), text && make("span", {}, text));
}

export const shareBar = (share) => bar(share, percent(share));
