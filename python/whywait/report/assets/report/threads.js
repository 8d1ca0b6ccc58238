// What threads lose, the locks that they wait for, their tasks, and their loops.

import { make } from "../dom.js";
import { percent, plural, seconds } from "../format.js";
import { afterFirst, ranking } from "../ranking.js";
import { addBlockCard, callLink } from "./cards.js";

const whole = (value) => value.toLocaleString("en-US");

function whereOf(model, found, row) {
  return [row.callpath === null ? "(outside)" : callLink(model, "waiting", row.callpath), found.ranks > 1 && ` on rank ${row.rank}`];
}

function locksTable(model, found) {
  const { length } = model.facts;
  const critical = (row) => (row.critical ? `${seconds(row.critical)}${length ? ` (${percent(row.critical / length)})` : ""}` : "–");
  return ranking("locks", ["Lock, by where threads wait for it", "Waiting", "Contended", "Longest queue", "Owned", "On the critical path"],
    found.locks.map((row) => [
      whereOf(model, found, row), seconds(row.waiting), `${whole(row.contended)} of ${whole(row.acquisitions)}`, whole(row.longest_queue),
      seconds(row.holding), critical(row),
    ]), afterFirst);
}

// Tasks that take longer to create and start than to run are too small.
function benefitText(row) {
  if (row.benefit === null) return "–";
  const times = `${row.benefit < 10 ? row.benefit.toFixed(1) : whole(Math.round(row.benefit))}×`;
  return row.benefit < 1 ? make("b", { title: "It takes longer to create and start such a task than to run it." }, `${times}, too small`) : times;
}

function tasksTable(model, found) {
  return ranking("tasks",
    ["Tasks, by construct", "Number", "Elsewhere", "Run", "Median", "Longest", "Lengths", "To create", "To start", "Run / overhead"],
    found.tasks.map((row) => [
      whereOf(model, found, row), whole(row.tasks), whole(row.elsewhere), seconds(row.execution), seconds(row.median), seconds(row.longest),
      make("td", {}, lengthsPicture(row)), seconds(row.median_creation), seconds(row.median_delay), benefitText(row),
    ]), afterFirst);
}

// How many tasks run how long, from the shortest on; those left of the line take longer to create and start than to run.
function lengthsPicture(row) {
  const step = (one) => Math.round(Math.log2(one.from / row.lengths[0].from));
  const counts = Array.from({ length: step(row.lengths.at(-1)) + 1 }, () => 0);
  for (const one of row.lengths) counts[step(one)] = one.tasks;
  const most = Math.max(...counts);
  const wide = 100 / counts.length;
  const overhead = row.median_creation + row.median_delay;
  const line = Math.min(100, Math.max(0, wide * Math.log2(overhead / row.lengths[0].from)));
  const [least, longest] = [row.lengths[0].from, row.lengths.at(-1).to].map(seconds);
  const short = overhead > 0 ? `; creating and starting one takes ${seconds(overhead)}` : "";
  return make("svg:svg", { class: "spark lengths", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img",
    "aria-label": `Tasks by how long they run, from ${least} to ${longest}${short}` },
  counts.map((count, i) => count > 0 && make("svg:rect", { x: i * wide, width: wide * 0.86, y: 20 - (20 * count) / most, height: (20 * count) / most },
    make("svg:title", {}, `${plural(count, "task")} of ${seconds(row.lengths[0].from * 2 ** i)} to ${seconds(row.lengths[0].from * 2 ** (i + 1))}`))),
  overhead > row.lengths[0].from && make("svg:line", { x1: line, x2: line, y1: 0, y2: 20, class: "benefit" }, make("svg:title", {}, `a task shorter than ${seconds(overhead)} costs more than it gains`)));
}

const DISTRIBUTIONS = {
  tiny: "less than ten times as long as to fork and join", tail: "threads differ little", few: "too few instances to tell",
  alternating: "another one each time",
};

function loopsTable(model, found) {
  const last = (row) => (row.distribution === "persistent"
    ? `thread ${row.last_thread} in ${whole(row.last_count)} of ${whole(row.instances)}` : DISTRIBUTIONS[row.distribution]);
  return ranking("loops", ["Loops, sections, single blocks", "Instances", "Threads", "Mean time", "Longest", "Loss", "Late start", "Last thread"],
    found.loops.map((row) => [
      whereOf(model, found, row), whole(row.instances), whole(row.threads), seconds(row.mean), seconds(row.longest), seconds(row.loss),
      seconds(row.late_start), last(row),
    ]), afterFirst);
}

function regionText(model, found, row) {
  const least = `the longest chain takes ${seconds(row.span)}, so more than ${row.parallelism.toFixed(1)} threads are of no use`;
  return make("p", {}, row.callpath === null ? "(outside)" : callLink(model, "time", row.callpath), found.ranks > 1 && ` on rank ${row.rank}`,
    `: ${seconds(row.work)} of work on ${plural(row.threads, "thread")}; ${least}.`);
}

const LOSS_COLORS = {
  Imbalance: "waiting", Contention: "onesided", Tasks: "p2p", "Management of teams": "overhead", Communication: "collective", Rest: "library",
};

// Why threads lose time in parallel regions, as one bar.
function lossesBar({ losses }) {
  if (!losses.length) return null;
  const sum = (key) => losses.reduce((all, one) => all + one[key], 0);
  const lost = `In parallel regions, threads lose ${seconds(sum("value"))}, ${percent(sum("share"))} of the processor time.`;
  const texts = losses.map((one) => `${one.name} ${seconds(one.value)} (${percent(one.share)})`);
  const colored = ({ name }, as) => ({ class: `${as}${name === "Imbalance" ? " waiting" : ""}`, style: { "--color": `var(--time-${LOSS_COLORS[name]})` } });
  return [make("p", { class: "lead" }, lost), make("div", { class: "losses" },
    make("div", { class: "stack", role: "img", "aria-label": texts.join(", ") }, losses.map((one) => {
      const { style, ...rest } = colored(one, "part");
      return make("span", { ...rest, style: { ...style, "flex-grow": one.value / sum("value") } });
    })),
    make("div", { class: "swatches" }, losses.map((one, i) => make("span", {}, make("i", colored(one, "swatch")), texts[i]))))];
}

function threadsText(model, found) {
  const contended = found.locks.length + found.more_locks;
  const locks = contended && `Threads wait ${seconds(found.waiting)} for ${whole(contended)} of ${plural(found.all_locks, "lock")}.`;
  const tasks = found.count && `${plural(found.count, "task")} run for ${seconds(found.execution)}.`;
  const more = [[found.more_locks, "lock"], [found.more_tasks, "construct"], [found.more_regions, "region"], [found.more_loops, "loop"]];
  const left = more.filter(([count]) => count).map(([count, what]) => plural(count, `more ${what}`));
  return [
    lossesBar(found),
    Boolean(locks || tasks) && make("p", { class: "lead" }, [locks, tasks].filter(Boolean).join(" ")),
    contended > 0 && make("div", { class: "wide" }, locksTable(model, found)),
    found.tasks.length > 0 && make("div", { class: "wide" }, tasksTable(model, found)),
    found.loops.length > 0 && make("div", { class: "wide" }, loopsTable(model, found)),
    found.regions.map((row) => regionText(model, found, row)),
    left.length > 0 && make("p", { class: "hint" }, `And ${left.join(", ")}: `, make("code", {}, "whywait threads"), "."),
  ];
}

addBlockCard(43, "threads", "Threads", threadsText);
