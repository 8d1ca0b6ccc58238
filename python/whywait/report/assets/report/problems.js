// The worst wait states: where, for whom and why ranks wait most, and how the longest of these waits came about.

import { blamed, chainPicture, shortName, whyText } from "../chain.js";
import { hasBlock } from "../data.js";
import { card, make } from "../dom.js";
import { percent, plural, seconds } from "../format.js";
import { exploreLink, timelineLink } from "../link.js";
import { STANDS_OUT, addCard, callText, mostOn, shareOn } from "./cards.js";

function worstProblems(model) {
  const { problems } = model.story;
  if (!problems.length) return card("What is worst", "No wait states were found.");
  const title = problems.length > 1 ? `The ${["", "", "two", "three"][problems.length]} worst problems` : "The worst problem";
  return make("section", { class: "card" }, make("h2", {}, title),
    make("div", { class: "problems" }, problems.map((one, i) => problem(model, one, i + 1))));
}

function problem(model, problem, number) {
  const call = shortName(problem.callpath.at(-1));
  const many = problem.ranks > 1;
  const { worst_thread: thread, worst_thread_share: ofThread } = problem;
  const alone = thread === null || ofThread > 0.999;
  const who = many ? `${plural(problem.ranks, "rank")} wait` : `${alone ? capital(mostOn(problem)) : `Rank ${problem.worst_rank}`} waits`;
  const facts = [];
  if (!many && !alone) {
    facts.push(["Where", ofThread < STANDS_OUT ? "No single thread stands out." : `Most on thread ${thread} (${percent(ofThread)}).`]);
  }
  const { cause } = problem;
  if (cause) {
    const there = cause.callpath && cause.callpath.join("\n") !== problem.callpath.join("\n") ? shortName(cause.callpath.at(-1)) : null;
    const place = model.threaded && !many && cause.rank === problem.worst_rank ? `threads of rank ${cause.rank}` : `rank ${cause.rank}`;
    const whom = there ? `the ${there} of ${place}` : place;
    facts.push(["Who", cause.share > 0.995 ? `All of it is for ${whom}.`
      : cause.share < 0.0005 ? "No single rank stands out."
        : cause.share < STANDS_OUT ? `No single rank stands out: at most ${percent(cause.share)} of it is for ${whom}.`
          : `${cause.share > 0.5 ? "Most" : "The largest part"} of it is for ${whom} (${percent(cause.share)}).`]);
  } else if (many) {
    facts.push(["Where", problem.worst_rank_share < Math.max(STANDS_OUT, 1.1 / problem.ranks) ? "No single rank stands out."
      : `Most on ${mostOn(problem)} (${percent(shareOn(problem))}).`]);
  }
  const root = problem.history && blamed(problem.history)[0];
  // A wait that extends beyond the focus is described whole.
  const isCut = root && problem.history.waiting > 1.001 * problem.waiting;
  const cut = isCut ? ` Of this wait, ${seconds(problem.waiting)} lie in the focus.` : "";
  if (root) facts.push(["Why", `${whyText(problem.history, root, (rank, thread) => model.threadName(rank, thread))}${cut}`]);
  if (problem.look_at) facts.push(["Look at", problem.look_at]);
  const longest = hasBlock("timeline") && problem.history;
  // A host that waits for a busy device loses nothing.
  return make("article", { class: problem.metric === "gpu_host_wait" ? "problem busy" : "problem" },
    make("h3", {}, make("span", { class: "number" }, number), problem.display_name,
      make("span", { class: "amount" }, `${percent(problem.share)} of the time`)),
    make("p", { class: "sentence" }, `${who} `, make("b", {}, seconds(problem.waiting)), " in ", make("code", {}, call),
      problem.what ? ` ${problem.what}` : "", problem.instances > 1 ? `, ${problem.instances.toLocaleString("en-US")} times in all.` : "."),
    make("p", { class: "path" }, callText(problem.callpath)),
    spark(problem),
    make("dl", {}, facts.map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
    make("a", { class: "go", href: exploreLink(problem.metric, problem.callpath_id) }, "Show it in the explorer"),
    longest && make("a", { class: "go more", href: timelineLink(longest.enter, longest.enter + longest.waiting,
      { wait: longest.enter + longest.waiting / 2, rank: longest.rank, thread: longest.thread }) },
      "Show the longest wait on the timeline"));
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// Waiting over ranks as a sparkline of bars.
function spark(problem) {
  const values = problem.by_place;
  if (values.length < 2) return null;
  const most = Math.max(...values);
  const step = 100 / values.length;
  return make("svg:svg", { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img",
    "aria-label": "Waiting over ranks" }, values.map((value, i) => value > 0 && make("svg:rect", {
    x: (i * step).toFixed(3), width: (values.length > 60 ? step : step - Math.min(0.16 * step, 0.4)).toFixed(3), y: (20 - (20 * value) / most).toFixed(2),
    height: ((20 * value) / most).toFixed(2) })));
}

function histories(model) {
  const told = model.story.problems.filter(({ history }) => history && history.cause_rank !== null);
  if (!told.length) return null;
  return card("How the longest waits came about",
    "Dashed: waiting. Solid: the time since the two last synchronized, with what took the other longest in it. Arrows: what ended a wait.",
    told.map(({ display_name: label, history }) => make("figure", { class: "history" },
      make("figcaption", {}, make("b", {}, label), ` in ${shortName(history.callpath.at(-1))} on rank ${history.rank}: ${seconds(history.waiting)}`),
      chainPicture(history, (rank, thread) => model.shortPlaceName(rank, thread)))));
}

addCard(30, worstProblems);
addCard(60, histories);
