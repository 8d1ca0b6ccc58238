// The overview: what matters most, as cards.

import { card, make } from "../dom.js";
import { percent, plural, seconds } from "../format.js";
import { shortName, shortNames } from "../names.js";
import { addView } from "../sections.js";
import { addCard, allCards } from "./cards.js";

class Overview {
  constructor(model) {
    for (const region of model.regions) shortNames.set(region.name, region.short);
    this.cards = allCards(model);
    this.node = make("div", { class: "overview" }, this.cards.map((one) => one.node ?? one));
  }

  repaint() {
    for (const one of this.cards) one.repaint?.();
  }
}

function headline(model) {
  const { run, facts, story } = model;
  const { outside: rest } = story.focus;
  const outside = rest.time > 0 ? ` Outside the focus: ${seconds(rest.time)}${rest.waiting > 0 ? `, ${seconds(rest.waiting)} of it waiting` : ""}.` : "";
  const parts = [plural(facts.processes ?? 0, "rank")];
  if (facts.locations !== facts.processes) parts.push(plural(facts.locations ?? 0, "location"));
  parts.push(plural(facts.events ?? 0, "event"), `${seconds(facts.length ?? 0)} long`);
  return make("section", { class: "headline" },
    make("div", {}, make("h1", {}, shortName(run.program ?? run.name)), make("p", {}, parts.join(" · "))),
    story.found ? verdict(story.found) : make("p", { class: "verdict" },
      make("b", { class: story.waiting.lost >= 0.05 ? "bad" : "" }, percent(story.waiting.share) || "0.0%"),
      make("span", {}, ` of ${story.focus.phrase} was spent waiting: `, make("b", {}, seconds(story.waiting.total)), " of ",
        seconds(story.account.time), " on all ", model.hasStreams ? "threads and streams" : model.threaded ? "threads" : "ranks", " together.", outside)));
}

// How much is lost, why, and what a change saves; the number stands out.
function verdict({ verdict: text, lost, time }) {
  const [, before, number, rest] = /^(.*?)([\d.]+%)(.*)$/s.exec(text) ?? [text, text, "", ""];
  return make("p", { class: "verdict whole" }, before && make("span", {}, before),
    number && make("b", { class: lost >= 0.05 * time ? "bad" : "" }, number), make("span", {}, rest));
}

function efficiencyCard(model) {
  const { efficiencies } = model.story;
  if (!efficiencies) return null;
  const indent = { parallel_efficiency: 0, load_balance: 1, communication_efficiency: 1, serialization: 2, transfer: 2 };
  const values = efficiencies.filter(({ name, value }) => name in indent && value !== null);
  if (!values.length) return null;
  return card("Efficiencies",
    `1 is best; above 0.8 is good. Each is the product of those indented below it.${
      model.threaded ? " Times of a process add up over its threads." : ""}`,
    make("div", { class: "efficiencies" }, values.map((one) => make("div", {
      class: "efficiency", style: { "--depth": indent[one.name], "--value": one.value },
    }, make("span", { class: "name" }, one.display_name), make("span", { class: "track" }, make("i")),
    make("b", { class: one.value < 0.8 ? "bad" : "" }, one.value.toFixed(3)),
    make("small", {}, `${one.formula} = ${Object.values(one.inputs).map(seconds).join(" / ")}`)))));
}

function traceProblems(model) {
  const findings = model.story.odd;
  if (!findings.length) return card("Problems in the trace", "None: all events match, and the clocks agree.");
  return card("Problems in the trace", null, make("ul", { class: "odd" }, findings.map(({ text, count, place }) =>
    make("li", {}, count > 1 && make("b", {}, `${count.toLocaleString("en-US")} × `), text, place && make("small", {}, ` (${place})`)))));
}

function about(model) {
  const { resolution, run, whywait } = model;
  const notes = [...model.story.recording];
  if (resolution.merged > 1) notes.push(`Values by rank are kept for groups of ${resolution.merged} neighboring locations.`);
  if (!resolution.exact) notes.push("Values by rank are rounded to four digits; all totals are exact.");
  return make("footer", {}, `whywait ${whywait} · ${run.path} · `, "All numbers are also in severities.parquet. ", notes.join(" "));
}

addCard(10, headline);
addCard(90, (model) => make("div", { class: "pair" }, efficiencyCard(model), traceProblems(model)));
addCard(100, about);

addView({ name: "overview", title: "Overview", key: "o", order: 10, View: Overview });
