// The overview: the parts of time, the worst wait states, their causes, and warnings.

import { blamed, chainPicture, shortName, shortNames, whyText } from "./chain.js";
import { fitCanvas } from "./charts.js";
import { css } from "./color.js";
import { make, tip } from "./dom.js";
import { clock, percent, plural, seconds } from "./format.js";
import { Iterations } from "./iterations.js";
import { exploreLink, timelineLink } from "./link.js";

// Below this share no single rank stands out.
const STANDS_OUT = 0.2;
const FAMILIES = {
  work: "Computation", devices: "Devices", threads: "Threads", communication: "Communication", overhead: "Measurement",
  idle: "Idle threads", waiting: "Waiting",
};

// The rank with the largest value, and its thread if it has several.
function mostOn(row) {
  return row.worst_thread === null ? `rank ${row.worst_rank}` : `rank ${row.worst_rank}, thread ${row.worst_thread}`;
}

function shareOn(row) {
  return row.worst_thread_share ?? row.worst_rank_share;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

export class Overview {
  constructor(model) {
    this.model = model;
    for (const region of model.regions) shortNames.set(region.name, region.short);
    this.iterations = new Iterations(model);
    this.node = make("div", { class: "overview" }, this.sections());
  }

  sections() {
    const { story } = this.model;
    return [
      this.headline(), this.time(), this.problems(), this.iterations.node, this.causes(), this.histories(), this.critical(), this.advice(),
      make("div", { class: "pair" }, this.efficiencies(), this.odd(story.odd)), this.about(),
    ];
  }

  card(title, lead, ...content) {
    return make("section", { class: "card" }, make("h2", {}, title), lead && make("p", { class: "lead" }, lead), content);
  }

  callText(names) {
    return names.map(shortName).join(" → ");
  }

  // A call path as a link into the panes.
  callLink(metric, callpath) {
    const call = this.model.callNumber.get(callpath);
    const names = this.model.callPath(call);
    return make("a", { class: "path", href: exploreLink(metric, callpath), title: names.join(" → ") },
      names.length > 1 && make("span", {}, `${names.slice(0, -1).join(" → ")} → `), make("b", {}, names.at(-1)));
  }

  headline() {
    const { run, facts, story } = this.model;
    const { outside: rest } = story.focus;
    const outside = rest.time > 0 ? ` Outside the focus: ${seconds(rest.time)}${rest.waiting > 0 ? `, ${seconds(rest.waiting)} of it waiting` : ""}.` : "";
    const parts = [plural(facts.processes ?? 0, "rank")];
    if (facts.locations !== facts.processes) parts.push(plural(facts.locations ?? 0, "location"));
    parts.push(plural(facts.events ?? 0, "event"), `${seconds(facts.length ?? 0)} long`);
    return make("section", { class: "headline" },
      make("div", {}, make("h1", {}, shortName(run.program ?? run.name)), make("p", {}, parts.join(" · "))),
      make("p", { class: "verdict" },
        make("b", { class: story.waiting.share >= 0.05 ? "bad" : "" }, percent(story.waiting.share) || "0.0%"),
        make("span", {}, ` of ${story.focus.phrase} was spent waiting: `, make("b", {}, seconds(story.waiting.total)), " of ",
          seconds(story.account.time), " on all ", this.model.hasStreams ? "threads and streams" : this.model.threaded ? "threads" : "ranks", " together.", outside)));
  }

  time() {
    const { parts } = this.model.story;
    if (!parts.length) return null;
    const whole = parts.reduce((sum, part) => sum + part.value, 0);
    const seen = {};
    const painted = parts.map((part) => {
      const number = (seen[part.family] = (seen[part.family] ?? -1) + 1);
      return { ...part, color: `var(--${part.family}-${Math.min(4, number)})`, share: part.value / whole };
    });
    const groups = Object.keys(FAMILIES).flatMap((family) => {
      const inside = painted.filter((part) => part.family === family);
      return inside.length ? [{ family, inside, value: inside.reduce((sum, part) => sum + part.value, 0) }] : [];
    });
    const swatch = (part) => make("i", { class: `swatch ${part.family}`, style: { "--color": part.color } });
    const explain = (part) => (event) => tip.show(event, make("b", {}, part.label), make("br"),
      `${seconds(part.value)}, ${percent(part.share)} of ${this.model.story.focus.phrase}`);
    return this.card("Where the time went", this.model.story.focus.name === "all" ? null : `In ${this.model.story.focus.phrase}.`,
      make("div", { class: "stack", role: "img", "aria-label": painted.map((part) => `${part.label} ${percent(part.share)}`).join(", ") },
        painted.map((part) => make("a", {
          class: `part ${part.family}`, href: exploreLink(part.metric), style: { "flex-grow": part.share, "--color": part.color },
          onmousemove: explain(part), onmouseleave: () => tip.hide(), "aria-label": `${part.label} ${percent(part.share)}`,
        }, part.share > 0.07 && make("span", {}, part.label)))),
      make("div", { class: "families" }, groups.map(({ family, inside, value }) => make("div", {},
        make("h3", {}, FAMILIES[family], make("span", {}, `${seconds(value)} · ${percent(value / whole)}`)),
        (inside.length > 1 || inside[0].label !== FAMILIES[family]) && inside.map((part) =>
          make("a", { class: "legend-row", href: exploreLink(part.metric) }, swatch(part), make("span", {}, part.label),
            make("b", {}, seconds(part.value)), make("span", {}, percent(part.share)))),
        inside.length === 1 && inside[0].label === FAMILIES[family] &&
          make("a", { class: "legend-row", href: exploreLink(inside[0].metric) }, swatch(inside[0]),
            make("span", {}, "the program itself"), make("b", {}, seconds(value)), make("span", {}, percent(value / whole)))))),
      this.byRank(painted));
  }

  // The name of a location.
  get placeWord() {
    const { facts, story, hasStreams, threaded } = this.model;
    return hasStreams ? "thread or stream" : threaded ? "thread" : story.running === facts.processes ? "rank" : "location";
  }

  // The parts of time over ranks; each column is a place or the mean of neighboring ones.
  byRank(parts) {
    const count = parts[0].ranks.length;
    if (count < 2) return null;
    const sums = Array.from({ length: count }, (_, i) => parts.reduce((sum, part) => sum + part.ranks[i], 0));
    const most = Math.max(...sums);
    const canvas = make("canvas", { role: "img", "aria-label": "Where the time went, by rank" });
    const frame = make("div", { class: "by-rank" }, canvas);
    const locations = this.model.story.running;
    const each = Math.ceil(locations / count);
    const numbered = locations === this.model.facts.processes ? "rank" : "location";
    const draw = () => {
      const width = frame.clientWidth;
      const height = frame.clientHeight;
      if (!width) return;
      const context = fitCanvas(canvas, width, height);
      const step = width / count;
      const gap = step > 5 ? 1 : 0;
      const colors = new Map(parts.map((part) => [part, css(part.color.slice(4, -1))]));
      for (let i = 0; i < count; i++) {
        let bottom = height;
        const left = Math.round(i * step);
        for (const part of parts) {
          const high = (height * part.ranks[i]) / most;
          context.fillStyle = colors.get(part);
          context.fillRect(left, bottom - high, Math.round((i + 1) * step) - left - gap, high);
          bottom -= high;
        }
      }
    };
    canvas.addEventListener("mousemove", (event) => {
      const i = Math.min(count - 1, Math.floor(((event.clientX - canvas.getBoundingClientRect().left) * count) / frame.clientWidth));
      const name = each > 1 ? `mean of ${numbered}s ${i * each}–${Math.min(locations, (i + 1) * each) - 1}` : this.model.placeName(this.model.shown[i]);
      tip.show(event, make("b", {}, name), make("table", {}, parts.filter((part) => part.ranks[i] > 0).reverse().map((part) =>
        make("tr", {}, make("th", {}, make("i", { class: `swatch ${part.family}`, style: { "--color": part.color } }), part.label),
          make("td", {}, seconds(part.ranks[i]))))));
    });
    canvas.addEventListener("mouseleave", () => tip.hide());
    new ResizeObserver(draw).observe(frame);
    this.redraw = draw;
    return make("figure", {}, frame, make("figcaption", {}, make("span", {}, each > 1 ? `${numbered} 0` : this.model.placeName(this.model.shown[0])),
      make("span", {}, each > 1 ? `${each} ${numbered}s in a column` : `by ${this.placeWord}`, `; highest: ${seconds(most)}`),
      make("span", {}, each > 1 ? `${numbered} ${locations - 1}` : this.model.placeName(this.model.shown[count - 1]))));
  }

  problems() {
    const { problems } = this.model.story;
    if (!problems.length) return this.card("What is worst", "No wait states were found.");
    const title = problems.length > 1 ? `The ${["", "", "two", "three"][problems.length]} worst problems` : "The worst problem";
    return make("section", { class: "card" }, make("h2", {}, title),
      make("div", { class: "problems" }, problems.map((problem, i) => this.problem(problem, i + 1))));
  }

  problem(problem, number) {
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
      const place = this.model.threaded && !many && cause.rank === problem.worst_rank ? `threads of rank ${cause.rank}` : `rank ${cause.rank}`;
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
    if (root) facts.push(["Why", `${whyText(problem.history, root, (rank, thread) => this.model.threadName(rank, thread))}${cut}`]);
    if (problem.look_at) facts.push(["Look at", problem.look_at]);
    const longest = document.getElementById("data-timeline") && problem.history;
    return make("article", { class: "problem" },
      make("h3", {}, make("span", { class: "number" }, number), problem.display_name,
        make("span", { class: "amount" }, `${percent(problem.share)} of the time`)),
      make("p", { class: "sentence" }, `${who} `, make("b", {}, seconds(problem.waiting)), " in ", make("code", {}, call),
        problem.what ? ` ${problem.what}` : "", problem.instances > 1 ? `, ${problem.instances.toLocaleString("en-US")} times in all.` : "."),
      make("p", { class: "path" }, this.callText(problem.callpath)),
      this.spark(problem),
      make("dl", {}, facts.map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
      make("a", { class: "go", href: exploreLink(problem.metric, problem.callpath_id) }, "Show it in the explorer"),
      longest && make("a", { class: "go more", href: timelineLink(longest.enter, longest.enter + longest.waiting,
        { wait: longest.enter + longest.waiting / 2, rank: longest.rank, thread: longest.thread }) },
        "Show the longest wait on the timeline"));
  }

  // Waiting over ranks as a sparkline of bars.
  spark(problem) {
    const values = problem.by_place;
    if (values.length < 2) return null;
    const most = Math.max(...values);
    const step = 100 / values.length;
    return make("svg:svg", { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img",
      "aria-label": "Waiting over ranks" }, values.map((value, i) => value > 0 && make("svg:rect", {
      x: (i * step).toFixed(3), width: (values.length > 60 ? step : step - Math.min(0.16 * step, 0.4)).toFixed(3), y: (20 - (20 * value) / most).toFixed(2),
      height: ((20 * value) / most).toFixed(2) })));
  }

  causes() {
    const { delay, account } = this.model.story;
    if (!delay?.length) return null;
    // Ignore rounding noise of differences.
    const least = 1e-9 * account.waiting;
    const elsewhere = account.elsewhere > least ? `; causes of ${seconds(account.elsewhere)} lie outside the focus` : "";
    const none = `${elsewhere}${account.unknown > least ? `; ${seconds(account.unknown)} has no known cause` : ""}`;
    const isNamed = account.unexplained >= 0.001 * account.waiting && account.unexplained > 0;
    const unknown = none + (isNamed ? `; ${seconds(account.unexplained)} exceeds the extra time of its causes` : "");
    const idle = account.idle_costs > 0 ? ` Idle time of ${account.idle}, which ${account.idle === "threads" ? "does not count as waiting" : "no thread waits for"}, costs another ${seconds(account.idle_costs)}.` : "";
    return this.card("Who causes the waiting",
      `${account.waiting - account.known <= least && !isNamed ? `The causes of all ${seconds(account.waiting)} of waiting are known`
        : `The causes of ${percent(account.known / account.waiting)} of the ${seconds(account.waiting)} of waiting are known`}${unknown}. `
        + `These call paths took longer on some ranks than on others, which made the others wait, there or later.${idle}`,
      make("table", { class: "ranking" }, make("thead", {}, make("tr", {}, ["Call path", "Waiting caused", "Share", "Most on", "Seen as"].map((name) => make("th", {}, name)))),
        make("tbody", {}, delay.map((row) => make("tr", {},
          make("td", {}, this.callLink("delay", row.callpath_id)),
          make("td", {}, seconds(row.costs), row.long_term > 0.01 * row.costs && make("small", {}, ` ${seconds(row.long_term)} indirectly`)),
          make("td", { class: "bar" }, make("i", { style: { width: `${100 * row.share}%` } }), make("span", {}, percent(row.share))),
          make("td", {}, row.worst_rank_share < STANDS_OUT ? "no single rank" : `${mostOn(row)} (${percent(shareOn(row))})`),
          make("td", {}, row.classes.slice(0, 2).map((kind) => `${kind.display_name} ${seconds(kind.costs)}`).join(", ")))))));
  }

  histories() {
    const told = this.model.story.problems.filter(({ history }) => history && history.cause_rank !== null);
    if (!told.length) return null;
    return this.card("How the longest waits came about",
      "Dashed: waiting. Solid: the time since the two last synchronized, with what took the other longest in it. Arrows: what ended a wait.",
      told.map(({ display_name: label, history }) => make("figure", { class: "history" },
        make("figcaption", {}, make("b", {}, label), ` in ${shortName(history.callpath.at(-1))} on rank ${history.rank}: ${seconds(history.waiting)}`),
        chainPicture(history, (rank, thread) => this.model.shortPlaceName(rank, thread)))));
  }

  critical() {
    const { critical_path: path, focus } = this.model.story;
    if (!path?.callpaths.length) return null;
    const whose = focus.name === "all" ? "" : ` of ${focus.phrase}`;
    const often = path.hops === 1 ? "once" : path.hops === 2 ? "twice" : `${path.hops?.toLocaleString("en-US")} times`;
    const place = this.placeWord === "rank" ? "rank" : "location";
    const ways = path.hops ? `and changes ${place}s ${often}` : `and stays on one ${place}`;
    const balance = this.model.facts.processes > 1 ? ` Up to ${seconds(path.imbalance)} of it could be saved by balancing work.` : "";
    return this.card("What determines how long the run takes",
      `The critical path${whose} is ${seconds(path.length)} long ${ways}. Only a change on this path can shorten the run.${balance}`,
      make("table", { class: "ranking" }, make("thead", {}, make("tr", {}, ["Call path", "On the path", "Share", "Imbalance", "Most on"].map((name) => make("th", {}, name)))),
        make("tbody", {}, path.callpaths.map((row) => make("tr", {},
          make("td", {}, this.callLink("critical_path", row.callpath_id)),
          make("td", {}, seconds(row.time)),
          make("td", { class: "bar" }, make("i", { style: { width: `${100 * row.share}%` } }), make("span", {}, percent(row.share))),
          make("td", {}, row.imbalance > 0 ? seconds(row.imbalance) : "–"),
          make("td", {}, row.worst_rank_share < STANDS_OUT ? "no single rank" : `${mostOn(row)} (${percent(shareOn(row))})`))))),
      this.walk(path.walk));
  }

  // Changes, ordered by their simulated savings.
  advice() {
    const { advice: found } = this.model.story;
    if (!found?.advice.length) return null;
    const steps = found.plan.map(({ what, before, after }) => `${what} (${seconds(before)} → ${seconds(after)})`);
    const plan = steps.length ? ` Combined, one after another: ${steps.join(", then ")}.` : "";
    return this.card("What would help",
      `Each change was simulated separately; the run takes ${seconds(found.before)}. Savings of several changes do not add up.${plan}`,
      make("table", { class: "ranking" }, make("thead", {}, make("tr", {}, ["Change", "Saved", "Share", "Length", "Repeat with"].map((name) => make("th", {}, name)))),
        make("tbody", {}, found.advice.slice(0, 6).map((row) => make("tr", {},
          make("td", {}, row.what, row.worst && make("small", {}, ` remaining: ${row.worst.display_name}, ${seconds(row.worst.waiting)}`)),
          make("td", {}, seconds(row.saved)),
          make("td", { class: "bar" }, make("i", { style: { width: `${100 * row.share}%` } }), make("span", {}, percent(row.share))),
          make("td", {}, seconds(row.after)),
          make("td", {}, make("code", {}, `whywait whatif ${row.option}`)))))));
  }

  // On which location the critical path is, over time.
  walk({ from, to, location, locations }) {
    if (location.length < 2 || locations < 2) return null;
    const width = 1000;
    const height = 110;
    const whole = to.at(-1) - from[0];
    const x = (time) => (width * (time - from[0])) / whole;
    const y = (number) => 6 + ((height - 12) * number) / (locations - 1);
    const steps = location.map((number, i) => `${i ? "L" : "M"}${x(from[i]).toFixed(2)} ${y(number).toFixed(2)}H${x(to[i]).toFixed(2)}`);
    return make("figure", {}, make("svg:svg", { class: "walk", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `The ${this.placeWord} that the critical path is on, over time` },
    make("svg:path", { d: steps.join("") })),
    make("figcaption", {}, make("span", {}, clock(from[0], whole)), make("span", {}, `which ${this.placeWord} is on the critical path: the first at the top, the last at the bottom`),
      make("span", {}, clock(to.at(-1), whole))));
  }

  efficiencies() {
    const { efficiencies } = this.model.story;
    if (!efficiencies) return null;
    const indent = { parallel_efficiency: 0, load_balance: 1, communication_efficiency: 1, serialization: 2, transfer: 2 };
    const values = efficiencies.filter(({ name, value }) => name in indent && value !== null);
    if (!values.length) return null;
    return this.card("Efficiencies",
      `1 is best; above 0.8 is good. Each is the product of those indented below it.${
        this.model.threaded ? " Times of a process add up over its threads." : ""}`,
      make("div", { class: "efficiencies" }, values.map((one) => make("div", {
        class: "efficiency", style: { "--depth": indent[one.name], "--value": one.value },
      }, make("span", { class: "name" }, one.display_name), make("span", { class: "track" }, make("i")),
      make("b", { class: one.value < 0.8 ? "bad" : "" }, one.value.toFixed(3)),
      make("small", {}, `${one.formula} = ${Object.values(one.inputs).map(seconds).join(" / ")}`)))));
  }

  odd(findings) {
    if (!findings.length) return this.card("Problems in the trace", "None: all events match, and the clocks agree.");
    return this.card("Problems in the trace", null, make("ul", { class: "odd" }, findings.map(({ text, count, place }) =>
      make("li", {}, count > 1 && make("b", {}, `${count.toLocaleString("en-US")} × `), text, place && make("small", {}, ` (${place})`)))));
  }

  about() {
    const { resolution, run, whywait } = this.model;
    const notes = [];
    if (resolution.merged > 1) notes.push(`Values by rank are kept for groups of ${resolution.merged} neighboring locations.`);
    if (!resolution.exact) notes.push("Values by rank are rounded to four digits; all totals are exact.");
    return make("footer", {}, `whywait ${whywait} · ${run.path} · `, "All numbers are also in severities.parquet. ", notes.join(" "));
  }
}
