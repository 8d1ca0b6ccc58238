// The registry of the cards of the overview, and what they share. Each card adds itself, so no other file names it.

import { documentBlock, hasBlock } from "../data.js";
import { fill, make } from "../dom.js";
import { percent } from "../format.js";
import { exploreLink } from "../link.js";
import { shortName } from "../names.js";

// Below this share no single rank stands out.
const STANDS_OUT = 0.2;

/** @type {[number, (model: any) => any][]} */
const made = [];

// `order`: the place of the card among the others; `makeCard(model)` returns an element, or the element as `node` with a
// function `repaint` if its colors are computed, or null if the run has nothing to show in it.
/**
 * @param {number} order
 * @param {(model: any) => any} makeCard
 */
export function addCard(order, makeCard) {
  made.push([order, makeCard]);
}

// A card of the data of a block, if the run has it: `content(model, data)` returns what follows the title.
export function addBlockCard(order, block, title, content) {
  addCard(order, (model) => {
    if (!hasBlock(block)) return null;
    const heading = make("h2", {}, title);
    const node = make("section", { class: `card ${block}` }, heading);
    documentBlock(block).then((data) => fill(node, heading, content(model, data)));
    return node;
  });
}

// The cards of a run from top to bottom.
export function allCards(model) {
  return made.sort(([a], [b]) => a - b).map(([, makeCard]) => makeCard(model)).filter(Boolean);
}

// The rank with the largest value, and its thread if it has several.
function mostOn(row) {
  return row.worst_thread === null ? `rank ${row.worst_rank}` : `rank ${row.worst_rank}, thread ${row.worst_thread}`;
}

function shareOn(row) {
  return row.worst_thread_share ?? row.worst_rank_share;
}

export function mostText(row) {
  return row.worst_rank_share < STANDS_OUT ? "no single rank" : `${mostOn(row)} (${percent(shareOn(row))})`;
}

export function callText(names) {
  return names.map(shortName).join(" → ");
}

// A call path as a link into the panes.
export function callLink(model, metric, callpath) {
  const call = model.callNumber.get(callpath);
  const names = model.callPath(call);
  return make("a", { class: "path", href: exploreLink(metric, callpath), title: names.join(" → ") },
    names.length > 1 && make("span", {}, `${names.slice(0, -1).join(" → ")} → `), make("b", {}, names.at(-1)));
}

// Values over places as bars.
/**
 * @param {number[]} values
 * @param {string} label
 */
export function spark(values, label) {
  if (values.length < 2) return null;
  const most = Math.max(...values) || 1;
  const step = 100 / values.length;
  return make("svg:svg", { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": label },
    values.map((value, i) => value > 0 && make("svg:rect", {
      x: (i * step).toFixed(3), width: (values.length > 60 ? step : step - Math.min(0.16 * step, 0.4)).toFixed(3), y: (20 - (20 * value) / most).toFixed(2),
      height: ((20 * value) / most).toFixed(2) })));
}
