// What would help: changes, ordered by their simulated savings.

import { make } from "../dom.js";
import { percent, seconds } from "../format.js";
import { addCard, card } from "./cards.js";

function advice(model) {
  const { advice: found } = model.story;
  if (!found?.advice.length) return null;
  const steps = found.plan.map(({ what, before, after }) => `${what} (${seconds(before)} → ${seconds(after)})`);
  const plan = steps.length ? ` Combined, one after another: ${steps.join(", then ")}.` : "";
  return card("What would help",
    `Each change was simulated separately; the run takes ${seconds(found.before)}. Savings of several changes do not add up.${plan}`,
    make("table", { class: "ranking" }, make("thead", {}, make("tr", {}, ["Change", "Saved", "Share", "Length", "Repeat with"].map((name) => make("th", {}, name)))),
      make("tbody", {}, found.advice.slice(0, 6).map((row) => make("tr", {},
        make("td", {}, row.what, row.worst && make("small", {}, ` remaining: ${row.worst.display_name}, ${seconds(row.worst.waiting)}`)),
        make("td", {}, seconds(row.saved)),
        make("td", { class: "bar" }, make("i", { style: { width: `${100 * row.share}%` } }), make("span", {}, percent(row.share))),
        make("td", {}, seconds(row.after)),
        make("td", {}, make("code", {}, `whywait whatif ${row.option}`)))))));
}

addCard(80, advice);
