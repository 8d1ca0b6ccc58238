// The causal chain of a wait state as a picture: processes are lanes, time runs to the right, and an arrow leads from a
// cause to the end of the wait.

import { make } from "./dom.js";
import { clock, seconds } from "./format.js";

const LANE = 46;
// Approximate width of a letter, pixels.
const LETTER = 7;

// The picture, as wide as the available space. `placeName` returns the name of a thread of a rank.
export function chainPicture(history, placeName) {
  const frame = make("div", { class: "chain-frame" }, drawChain(history, 1000, placeName));
  new ResizeObserver(() => {
    if (frame.clientWidth) frame.replaceChildren(drawChain(history, frame.clientWidth, placeName));
  }).observe(frame);
  return frame;
}

function drawChain(history, width, placeName) {
  const waits = [];
  const gather = (node) => { waits.push(node); node.waits.forEach(gather); };
  gather(history);
  const name = (node, prefix = "") => placeName(node[`${prefix}rank`], node[`${prefix}thread`]);
  // What a device does while it is waited for has just begun when the wait does.
  const until = (wait) => Math.max(wait.cause_time, wait.work.length && !wait.completion
    ? Math.min((wait.since ?? wait.cause_time) + wait.work[0].time, wait.enter + wait.waiting) : -Infinity);
  const lanes = new Map();
  const lane = (key) => {
    if (!lanes.has(key)) lanes.set(key, lanes.size);
    return lanes.get(key);
  };
  let from = Infinity;
  let to = -Infinity;
  for (const wait of waits) {
    lane(name(wait));
    if (wait.cause_rank !== null) lane(name(wait, "cause_"));
    from = Math.min(from, wait.enter, wait.since ?? wait.enter);
    to = Math.max(to, wait.enter + wait.waiting);
  }
  const margin = { left: 14 + LETTER * Math.max(...[...lanes.keys()].map((key) => key.length)), right: 14, top: 8, bottom: 26 };
  const room = width - margin.left - margin.right;
  const x = (time) => margin.left + (to > from ? (room * (time - from)) / (to - from) : 0);
  const y = (key) => margin.top + lane(key) * LANE;
  const height = margin.top + lanes.size * LANE + margin.bottom;
  const drawing = make("svg:svg", { class: "chain", viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `History of a wait state of ${seconds(history.waiting)} on ${name(history)}` });
  for (const [key, number] of lanes) {
    const top = margin.top + number * LANE;
    drawing.append(make("svg:line", { class: "lane", x1: margin.left, x2: width - margin.right, y1: top + LANE - 8, y2: top + LANE - 8 }),
      make("svg:text", { class: "who", x: 4, y: top + 26 }, key));
  }
  // Label work where no wait of its rank covers it, as close to its end as possible.
  const free = (key, begin, end) => {
    const over = waits.filter((wait) => name(wait) === key).map((wait) => [x(wait.enter), x(wait.enter + wait.waiting)]);
    let [left, right] = [x(begin), x(end)];
    for (const [first, last] of over) {
      if (last <= left || first >= right) continue;
      if (first - left > right - last) right = first;
      else left = last;
    }
    return [left, right];
  };
  const bar = (key, begin, end, kind, text, hint) => {
    const wide = Math.max(2, x(end) - x(begin));
    const group = make("svg:g", { class: kind }, make("svg:title", {}, hint),
      make("svg:rect", { x: x(begin), y: y(key) + 10, width: wide, height: 24, rx: 3 }));
    // The title has the full text.
    const last = kind === "work";
    const [left, right] = last ? free(key, begin, end) : [x(begin), x(end)];
    if (right - left > LETTER * text.length + 8) {
      group.append(make("svg:text", { x: last ? right - 6 : left + 6, y: y(key) + 26, "text-anchor": last ? "end" : "start" }, text));
    }
    drawing.append(group);
  };
  for (const wait of waits) {
    if (wait.cause_rank === null || wait.since === null) continue;
    const [work] = wait.work;
    const { completion } = wait;
    if (completion && !(work?.explains > completion.explains)) {
      const place = completion.callpath.map(shortName);
      bar(name(wait, "cause_"), wait.since, wait.since + completion.time, "work", `in ${place.at(-1)} ${seconds(completion.time)}`,
        `${place.join(" → ")}: left ${seconds(completion.time - completion.waiter_time)} later than by the waiter`);
    } else if (work) {
      const place = work.callpath.map(shortName);
      bar(name(wait, "cause_"), wait.since, until(wait), "work", `${place.at(-1)} ${seconds(work.time)}`,
        `${place.join(" → ")}: ${seconds(work.time)}, the waiter ${seconds(work.waiter_time)}`);
    }
  }
  for (const wait of waits) {
    const call = shortName(wait.callpath.at(-1));
    bar(name(wait), wait.enter, wait.enter + wait.waiting, "wait", `waits ${seconds(wait.waiting)}`,
      `waits ${seconds(wait.waiting)} in ${wait.callpath.map(shortName).join(" → ")} (${call}); explains ${seconds(wait.explains)}`);
  }
  for (const wait of waits) {
    if (wait.cause_rank === null) continue;
    const start = { x: x(until(wait)), y: y(name(wait, "cause_")) };
    const end = { x: x(wait.enter + wait.waiting), y: y(name(wait)) };
    const up = end.y < start.y;
    const first = start.y + (up ? 10 : 34);
    const last = end.y + (up ? 34 : 10);
    const tipY = last + (up ? 6 : -6);
    drawing.append(make("svg:path", { class: "arrow", d: `M${start.x} ${first}L${end.x} ${tipY}` }),
      make("svg:path", { class: "tip", d: `M${end.x} ${last}l-4 ${up ? 7 : -7}h8z` }));
  }
  const bottom = height - 6;
  drawing.append(make("svg:text", { class: "time", x: margin.left, y: bottom }, clock(from, to - from)),
    make("svg:text", { class: "time", x: width - margin.right, y: bottom, "text-anchor": "end" }, clock(to, to - from)),
    make("svg:text", { class: "time", x: margin.left + room / 2, y: bottom, "text-anchor": "middle" }, seconds(to - from)));
  return drawing;
}

// The root causes of a wait, largest first: work, completion of a call, or unexplained time. If a wait exceeds all of
// its factors, these explain only their own length.
export function blamed(history) {
  const found = [];
  const gather = (node, amount) => {
    const share = amount / node.explains;
    const part = share * (1 - node.unexplained / node.explains);
    const add = (kind, factor, explains) => found.push({ ...factor, kind, explains, rank: node.cause_rank, thread: factor.thread ?? node.cause_thread });
    for (const work of node.work) add("work", work, work.explains * part);
    if (node.completion) add("completion", node.completion, node.completion.explains * part);
    if (node.unexplained > 0 && node.cause_rank !== null) add("unexplained", {}, node.unexplained * share);
    for (const wait of node.waits) gather(wait, wait.explains * part);
  };
  gather(history, history.explains);
  return found.sort((a, b) => b.explains - a.explains);
}

// The largest root cause as a sentence. `placeName` returns the name of a thread of a rank.
export function whyText(history, root, placeName) {
  const who = root.rank === null ? "" : placeName(root.rank, root.thread);
  const begin = `The longest of them (${seconds(history.waiting)}) waits`;
  if (root.kind === "unexplained") {
    return `${seconds(root.explains)} of the longest of them (${seconds(history.waiting)}) are unexplained: `
      + `what ${who} did is much shorter. Noise, the network, or the library itself may be behind it.`;
  }
  if (root.kind === "completion") {
    return `${begin} because ${who} left the preceding ${shortName(root.callpath.at(-1))} `
      + `${seconds(root.time - root.waiter_time)} later.`;
  }
  return `${begin} because ${who} spends ${seconds(root.time)} in ${root.callpath.slice(-2).map(shortName).join(" → ")}`
    + `${root.waiter_time > 0.01 * root.time ? `, the waiter only ${seconds(root.waiter_time)}` : ""}.`;
}

// A C++ function without types and parameters; see `short_name` of the terminal.
export function shortName(name) {
  return shortNames.get(name) ?? name;
}
export const shortNames = new Map();
