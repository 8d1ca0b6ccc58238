// How well the clocks agree: what contradicts the order of events, and what each clock is moved by, as a card of the overview.

import { make } from "../dom.js";
import { clock, plural, seconds } from "../format.js";
import { afterFirst, ranking } from "../ranking.js";
import { addBlockCard } from "./cards.js";

const WIDTH = 1000;
const HEIGHT = 160;
// Clocks that have a label of their own in the picture.
const LABELED = 6;

// A value as a height in the picture, which has 0 in it.
function heights(moves) {
  const all = moves.flatMap(({ moved, uncertainty }) => moved.flatMap((value) => [value - (uncertainty ?? 0), value + (uncertainty ?? 0)]));
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const span = high - low || 1;
  return { low, high, at: (value) => HEIGHT - (HEIGHT * (value - low)) / span };
}

// What each clock is moved by over the run, with a band of what is uncertain.
function movesPicture({ moves, times }) {
  if (!moves.length) return null;
  const { low, high, at } = heights(moves);
  const end = times.at(-1) || 1;
  const x = (i) => ((WIDTH * times[i]) / end).toFixed(1);
  const line = (values) => values.map((value, i) => `${x(i)},${at(value).toFixed(1)}`);
  const drawn = moves.map(({ name, moved, uncertainty }, number) => make("svg:g", { style: { "--color": `hsl(${Math.round(47 + number * 137.508) % 360} 50% 50%)` } },
    uncertainty && make("svg:polygon", {
      points: [...line(moved.map((value) => value + uncertainty)), ...line(moved.map((value) => value - uncertainty)).reverse()].join(" ") }),
    make("svg:polyline", { points: line(moved).join(" ") }, make("svg:title", {}, name))));
  const most = [...moves].sort((a, b) => Math.max(...b.moved.map(Math.abs)) - Math.max(...a.moved.map(Math.abs))).slice(0, LABELED);
  const label = `What ${plural(moves.length, "clock")} are moved by over the run, from ${seconds(low)} to ${seconds(high)}`;
  return make("figure", { class: "moves" },
    make("svg:svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
      make("svg:line", { x1: 0, x2: WIDTH, y1: at(0), y2: at(0) }), drawn),
    make("figcaption", {}, make("span", {}, "0 s"), make("span", {}, `${label}: `, most.map(({ name, moved, uncertainty }, i) =>
      `${i ? ", " : ""}${name} ${seconds(moved[0])} to ${seconds(moved.at(-1))}${uncertainty ? ` (±${seconds(uncertainty)})` : ""}`)),
    make("span", {}, clock(end, end))));
}

// Violations over the run; those that are left are drawn over the others.
function coursePicture({ over_time: { violated, left }, times }) {
  const most = Math.max(...violated, ...left) || 1;
  const step = WIDTH / violated.length;
  const bars = (values, name) => values.map((value, i) => value > 0 && make("svg:rect", {
    class: name, x: (i * step).toFixed(2), width: (0.9 * step).toFixed(2), y: (40 - (40 * value) / most).toFixed(2), height: ((40 * value) / most).toFixed(2) }));
  const remain = left.reduce((sum, value) => sum + value, 0);
  const label = `Violations over the run: at most ${most} in a hundredth of it${remain ? `, ${remain} are left` : ", none is left"}`;
  return make("figure", { class: "over-time" },
    make("svg:svg", { viewBox: `0 0 ${WIDTH} 40`, preserveAspectRatio: "none", role: "img", "aria-label": label },
      bars(violated, "before"), bars(left, "left")),
    make("figcaption", {}, make("span", {}, "0 s"), make("span", {}, label), make("span", {}, clock(times.at(-1) ?? 0, times.at(-1) ?? 1))));
}

function kindsTable({ kinds }) {
  const whole = (value) => value.toLocaleString("en-US");
  return make("div", { class: "wide" }, ranking("plain", ["Constraints", "Number", "Violated", "Worst", "Left"],
    kinds.map(({ name, checked, violated, worst, left }) => [name, whole(checked), whole(violated), seconds(worst), whole(left)]), afterFirst));
}

addBlockCard(85, "clocks", "How well the clocks agree", (_, found) => [
  found.sentences.map((text) => make("p", { class: "lead" }, text)), movesPicture(found), coursePicture(found), kindsTable(found),
]);
