// The findings: the largest losses with their reasons, what a change saves, and the evidence.

import { hasBlock } from "../data.js";
import { card, make } from "../dom.js";
import { percent, seconds } from "../format.js";
import { exploreLink, timelineLink } from "../link.js";
import { bar, heads, ranking } from "../ranking.js";
import { addCard, callText, spark } from "./cards.js";

function findings(model) {
  const { found } = model.story;
  if (!found) return null;
  if (!found.findings.length) return card("Findings", found.verdict);
  const ends = [];
  if (found.together) ends.push(`The changes of ${found.together.what} save ${seconds(found.together.saved)}.`);
  if (found.rest > 0 && found.time) ends.push(`The rest of what is lost: ${percent(found.rest / found.time)} of the CPU time.`);
  return card("Findings", "The largest losses. What a change saves is simulated: by so much, the run becomes shorter.",
    make("ol", { class: "findings" }, found.findings.map((one, i) => finding(model, one, i + 1))),
    ends.length > 0 && make("p", { class: "ends" }, ends.join(" ")),
    found.next && make("p", { class: "next" }, "Next: ", command(found.next)));
}

function finding(model, one, number) {
  const whole = one.base === "cpu" ? "of the CPU time" : "of the time of the devices";
  return make("li", {}, make("details", {},
    make("summary", {},
      make("span", { class: "number" }, number),
      make("span", { class: "sentence" }, one.sentence),
      make("span", { class: "amount" }, make("small", { title: "CPU time of all threads together that is lost by it" }, "lost"), make("b", {}, seconds(one.loss)), make("span", { title: whole }, percent(one.share))),
      make("span", { class: "amount" }, make("small", { title: "By how much the run becomes shorter, by simulation" }, "saves"), ...saves(one))),
    evidence(model, one)));
}

function saves({ price, bound, worthless, harmful, unpriced, unsaved }) {
  if (price) {
    const amount = !worthless ? `${price.is_rough ? "about " : ""}${seconds(price.saved)}` : harmful ? `${seconds(-price.saved)} longer` : "nothing";
    return [make("b", { class: worthless ? "" : "good" }, amount),
      make("span", { title: price.about }, price.label)];
  }
  return bound ? [make("b", { class: "bound" }, `≤ ${seconds(bound.saved)}`), make("span", { title: bound.about }, bound.label)] : [make("small", { title: unpriced ?? undefined }, unsaved)];
}

function evidence(model, one) {
  const { example } = one;
  const most = Math.max(...one.lines.map(({ time }) => time));
  return make("div", { class: "evidence" },
    one.callpath && make("p", { class: "path" }, callText(one.callpath)),
    one.advice && make("p", {}, one.advice),
    one.lines.length > 0 && make("div", { class: "wide" }, ranking("", ["What is lost", "Time", ""],
      one.lines.map(({ label, time }) => [label, seconds(time), bar(time / most)]))),
    one.at_once.length > 0 && make("div", { class: "wide" }, ranking("", ["Compute at the same time", "Of the focus", ""],
      one.at_once.map(({ label, share }) => [label, percent(share), bar(share)]))),
    one.by_place.length > 1 && make("figure", {}, spark(one.by_place, "Time over ranks"),
      make("figcaption", {}, make("span", {}, `first ${model.placeWord}`), make("span", {}, `time in ${one.callpath.at(-1)} by ${model.placeWord}: ${seconds(Math.min(...one.by_place))} to ${seconds(Math.max(...one.by_place))}`),
        make("span", {}, `last ${model.placeWord}`))),
    (one.prices.length > 0 || one.unpriced) && make("div", { class: "wide" }, make("table", { class: "ranking" },
      heads(["If …", "Saves", "Repeat with"]),
      make("tbody", {}, one.prices.map((price) => make("tr", { class: price.is_bound ? "bound" : "" },
        make("td", {}, price.what, price.is_bound && make("small", {}, " (a bound: nobody can do this)")),
        make("td", {}, price.saved < 0 ? `${seconds(-price.saved)} longer` : `${price.is_rough ? "about " : ""}${seconds(price.saved)}`),
        make("td", {}, price.option && command(`whywait whatif TRACE ${price.option}`)))),
      one.unpriced && make("tr", {}, make("td", { colspan: 3 }, one.unpriced))))),
    example && make("p", {}, `A long wait that goes back to it, for example: ${example.label} on ${model.threadName(example.rank, example.thread)}, ${seconds(example.waiting)}.`),
    make("p", { class: "jumps" },
      one.callpath_id !== null && make("a", { class: "go", href: exploreLink("delay", one.callpath_id) }, "Show it in the explorer"),
      example && hasBlock("timeline") && make("a", { class: "go", href: timelineLink(example.enter, example.enter + example.waiting,
        { wait: example.enter + example.waiting / 2, rank: example.rank, thread: example.thread }) }, "Show this wait on the timeline")));
}

function command(text) {
  return make("code", { class: "command" }, text);
}

addCard(30, findings);
