// What makes others wait, what determines how long the run takes, and what would help.

import { card, make } from "../dom.js";
import { clock, percent, seconds } from "../format.js";
import { shortName } from "../names.js";
import { heads, ranking, shareBar } from "../ranking.js";
import { addCard, callLink, mostText } from "./cards.js";

const SHARES_SHOWN = 3;

function causes(model) {
  const { delay, passed_on: passedOn, account } = model.story;
  if (!delay?.length && !passedOn) return null;
  // Ignore rounding noise of differences.
  const least = 1e-9 * account.waiting;
  const elsewhere = account.elsewhere > least ? `; causes of ${seconds(account.elsewhere)} lie outside the focus` : "";
  const calls = passedOn > least ? ` Library calls, which take longer there than elsewhere, pass on ${seconds(passedOn)}.` : "";
  const none = `${elsewhere}${account.unknown > least ? `; ${seconds(account.unknown)} has no known cause` : ""}`;
  const isNamed = account.unexplained >= 0.001 * account.waiting && account.unexplained > 0;
  const unknown = none + (isNamed ? `; ${seconds(account.unexplained)} exceeds the extra time of its causes` : "");
  const idle = account.idle_costs > 0 ? ` Idle time of ${account.idle}, which ${account.idle === "threads" ? "does not count as waiting" : "no thread waits for"}, costs another ${seconds(account.idle_costs)}.` : "";
  return card("Who causes the waiting",
    `${account.waiting - account.known <= least && !isNamed ? `The causes of all ${seconds(account.waiting)} of waiting are known`
      : `The causes of ${percent(account.known / account.waiting)} of the ${seconds(account.waiting)} of waiting are known`}${unknown}. `
      + `What ranks did in these call paths made others wait, there or later.${calls}${idle}`,
    ranking("", ["Call path", "Waiting caused", "Share", "Most on", "Seen as"], (delay ?? []).map((row) => [
      callLink(model, "delay", row.callpath_id),
      [seconds(row.costs), row.long_term > 0.01 * row.costs && make("small", {}, ` ${seconds(row.long_term)} indirectly`)],
      shareBar(row.share),
      mostText(row),
      row.classes.slice(0, 2).map((kind) => `${kind.display_name} ${seconds(kind.costs)}`).join(", "),
    ])));
}

// The functions in which late ranks spend more time than those that wait, or less, by samples.
function lateFunctions(model) {
  const late = (model.story.delay ?? []).filter((row) => row.functions?.length);
  if (!late.length) return null;
  const most = Math.max(...late.flatMap((row) => row.functions.map((one) => Math.abs(one.cost))));
  // Less on the left, more on the right, what may be chance without color.
  const bar = ({ cost, certain, doubtful }) => make("td", { class: "difference" },
    make("i", { class: certain && !doubtful ? (cost > 0 ? "more" : "less") : undefined,
      style: { width: `${(50 * Math.abs(cost)) / most}%`, "margin-left": `${cost > 0 ? 50 : 50 - (50 * Math.abs(cost)) / most}%` } }));
  return card("In which functions late ranks spend more time",
    "What late ranks did more than those that wait for them, by samples, with the error at 95%. Blue is less; what is grey may be chance."
      + (late.some((row) => row.functions.some((one) => one.doubtful)) ? " Doubtful: these ranks share cores, and were sampled at ticks of the kernel." : ""),
    make("table", { class: "ranking" }, heads(["Function", "Waiting caused", "Less or more", "Share", "Source"]),
      late.map((row) => make("tbody", {},
        make("tr", {}, make("th", { scope: "rowgroup", colspan: "5" }, callLink(model, "delay", row.callpath_id))),
        row.functions.map((one) => make("tr", {},
          make("td", {}, one.callpath ? callLink(model, "sampled_time", one.callpath_id) : "in the system, or without a core"),
          make("td", {}, seconds(one.cost), make("small", {}, ` ± ${seconds(1.96 * one.deviation)}${one.doubtful ? ", doubtful" : ""}`)),
          bar(one),
          make("td", { class: "number-of" }, percent(one.share)),
          make("td", {}, one.source ?? "")))))));
}

// The largest shares of functions in a call path, by samples.
function sharesText(functions) {
  if (!functions?.length) return null;
  const shares = functions.slice(0, SHARES_SHOWN).map(({ callpath, share, error }) =>
    `${callpath ? shortName(callpath.at(-1)) : "in the system, or without a core"} ${percent(share)} ± ${percent(error)}`);
  return make("small", {}, ` by samples: ${shares.join(", ")}`);
}

function criticalPath(model) {
  const { critical_path: path, focus } = model.story;
  if (!path?.callpaths.length) return null;
  const whose = focus.name === "all" ? "" : ` of ${focus.phrase}`;
  const often = path.hops === 1 ? "once" : path.hops === 2 ? "twice" : `${path.hops?.toLocaleString("en-US")} times`;
  const place = model.placeWord === "rank" ? "rank" : "location";
  const ways = path.hops ? `and changes ${place}s ${often}` : `and stays on one ${place}`;
  const balance = model.facts.processes > 1 ? ` ${seconds(path.imbalance)} of it is imbalance: more than the mean over all ${place}s.` : "";
  return card("What determines how long the run takes",
    `The critical path${whose} is ${seconds(path.length)} long ${ways}. Only a change on this path can shorten the run.${balance}`,
    ranking("", ["Call path", "On the path", "Share", "Imbalance", "Most on"], path.callpaths.map((row) => [
      [callLink(model, "critical_path", row.callpath_id), sharesText(row.functions)],
      seconds(row.time),
      shareBar(row.share),
      row.imbalance > 0 ? seconds(row.imbalance) : "–",
      mostText(row),
    ])),
    walk(model, path.walk));
}

// On which location the critical path is, over time.
function walk(model, { from, to, location, locations }) {
  if (location.length < 2 || locations < 2) return null;
  const width = 1000;
  const height = 110;
  const whole = to.at(-1) - from[0];
  const x = (time) => (width * (time - from[0])) / whole;
  const y = (number) => 6 + ((height - 12) * number) / (locations - 1);
  const steps = location.map((number, i) => `${i ? "L" : "M"}${x(from[i]).toFixed(2)} ${y(number).toFixed(2)}H${x(to[i]).toFixed(2)}`);
  return make("figure", {}, make("svg:svg", { class: "walk", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `The ${model.placeWord} that the critical path is on, over time` },
  make("svg:path", { d: steps.join("") })),
  make("figcaption", {}, make("span", {}, clock(from[0], whole)), make("span", {}, `which ${model.placeWord} is on the critical path: the first at the top, the last at the bottom`),
    make("span", {}, clock(to.at(-1), whole))));
}

// Changes, ordered by their simulated savings.
function advice(model) {
  const { advice: found } = model.story;
  if (!found?.advice.length) return null;
  const steps = found.plan.map(({ what, before, after }) => `${what} (${seconds(before)} → ${seconds(after)})`);
  const plan = steps.length ? ` Combined, one after another: ${steps.join(", then ")}.` : "";
  return card("What would help",
    `Each change was simulated separately; the run takes ${seconds(found.before)}. Savings of several changes do not add up.${plan}`,
    ranking("", ["Change", "Saved", "Share", "Length", "Repeat with"], found.advice.slice(0, 6).map((row) => [
      [row.what, row.worst && make("small", {}, ` remaining: ${row.worst.display_name}, ${seconds(row.worst.waiting)}`)],
      seconds(row.saved),
      shareBar(row.share),
      seconds(row.after),
      make("code", {}, `whywait whatif ${row.option}`),
    ])));
}

addCard(50, causes);
addCard(55, lateFunctions);
addCard(70, criticalPath);
addCard(80, advice);
