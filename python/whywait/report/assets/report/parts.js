// Where the time went: its parts in sum, and over ranks.

import { fitCanvas } from "../charts.js";
import { css } from "../color.js";
import { card, make, tip } from "../dom.js";
import { percent, plural, seconds } from "../format.js";
import { exploreLink } from "../link.js";
import { addCard } from "./cards.js";
import { color, isWait } from "./device_colors.js";

// Of parts that name no group.
const FAMILIES = {
  work: "Computation", devices: "Devices", io: "I/O", threads: "Threads", communication: "Communication", overhead: "Measurement",
  idle: "Idle threads", waiting: "Waiting",
};

function time(model) {
  const { parts } = model.story;
  if (!parts.length) return null;
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  const painted = parts.map((part) => ({ ...part, color: `var(--${part.family}-${part.shade})`, share: part.value / whole }));
  const groups = [];
  for (const part of painted) {
    const name = part.group ?? FAMILIES[part.family];
    const group = groups.find((one) => one.name === name) ?? { name, inside: [], value: 0 };
    if (!group.inside.length) groups.push(group);
    group.inside.push(part);
    group.value += part.value;
  }
  const swatch = (part) => make("i", { class: `swatch ${part.family}`, style: { "--color": part.color } });
  const explain = (part) => (event) => tip.show(event, make("b", {}, part.label), make("br"),
    `${seconds(part.value)}, ${percent(part.share)} of ${model.story.focus.phrase}`, part.about && make("p", {}, part.about));
  const ranks = byRank(model, painted);
  const ofDevices = devices(model);
  // What the verdict is about comes first.
  const leads = model.story.found?.of_devices && ofDevices;
  return { repaint: ranks?.repaint, node: card("Where the time went", model.story.focus.name === "all" ? null : `In ${model.story.focus.phrase}.`,
    leads && [leads, make("section", { class: "of-devices" }, make("h3", {}, "The CPUs", make("span", {}, seconds(whole))))],
    make("div", { class: "stack", role: "img", "aria-label": painted.map((part) => `${part.label} ${percent(part.share)}`).join(", ") },
      painted.map((part) => make("a", {
        class: `part ${part.family}${part.color.endsWith("-0)") ? "" : " light"}`, href: exploreLink(part.metric), style: { "flex-grow": part.share, "--color": part.color },
        onmousemove: explain(part), onmouseleave: () => tip.hide(), "aria-label": `${part.label} ${percent(part.share)}`,
      }, part.share > 0.07 && make("span", {}, part.label)))),
    make("div", { class: "families" }, groups.map(({ name, inside, value }) => make("div", {},
      make("h3", {}, name, make("span", {}, `${seconds(value)} · ${percent(value / whole)}`)),
      (inside.length > 1 || inside[0].label !== name) && inside.map((part) =>
        make("a", { class: "legend-row", href: exploreLink(part.metric), title: part.about }, swatch(part), make("span", {}, part.label),
          make("b", {}, seconds(part.value)), make("span", {}, percent(part.share)))),
      inside.length === 1 && inside[0].label === name &&
        make("a", { class: "legend-row", href: exploreLink(inside[0].metric), title: inside[0].about }, swatch(inside[0]),
          make("span", {}, inside[0].family === "work" ? "the program itself" : name), make("b", {}, seconds(value)), make("span", {}, percent(value / whole)))))),
    ranks?.node, !leads && ofDevices) };
}

// What all devices did, as a bar of its own.
function devices(model) {
  const found = model.story.devices;
  if (!found) return null;
  const share = (row) => percent(row.time / found.time);
  const waits = (row) => (isWait(row.name) ? " waiting" : "");
  return make("section", { class: "of-devices" },
    make("h3", {}, "The devices", make("span", {}, `${seconds(found.time)} of ${plural(found.count, "device")}`)),
    make("div", { class: "stack", role: "img", "aria-label": found.rows.map((row) => `${row.label} ${share(row)}`).join(", ") },
      found.rows.map((row) => make("a", {
        class: `part${waits(row)}`, href: "#devices", style: { "flex-grow": row.time / found.time, "--color": color(row.name) }, "aria-label": `${row.label} ${share(row)}`,
        onmousemove: (event) => tip.show(event, make("b", {}, row.label), make("br"), `${seconds(row.time)}, ${share(row)} of the devices in ${model.story.focus.phrase}`),
        onmouseleave: () => tip.hide(),
      }))),
    make("div", { class: "swatches" }, found.rows.map((row) => make("span", {},
      make("i", { class: `swatch${waits(row)}`, style: { "--color": color(row.name) } }), `${row.label}: ${seconds(row.time)}, ${share(row)}`))));
}

// The parts of time over ranks; each column is a place or the mean of neighboring ones.
function byRank(model, parts) {
  const count = parts[0].ranks.length;
  if (count < 2) return null;
  const sums = Array.from({ length: count }, (_, i) => parts.reduce((sum, part) => sum + part.ranks[i], 0));
  const most = Math.max(...sums);
  const canvas = make("canvas", { role: "img", "aria-label": "Where the time went, by rank" });
  const frame = make("div", { class: "by-rank" }, canvas);
  const { count: locations, places } = model.story.columns;
  const each = Math.ceil(locations / count);
  const numbered = locations === model.facts.processes ? "rank" : "location";
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
    const name = each > 1 ? `mean of ${numbered}s ${i * each}–${Math.min(locations, (i + 1) * each) - 1}` : model.placeName(places[i]);
    tip.show(event, make("b", {}, name), make("table", {}, parts.filter((part) => part.ranks[i] > 0).reverse().map((part) =>
      make("tr", {}, make("th", {}, make("i", { class: `swatch ${part.family}`, style: { "--color": part.color } }), part.label),
        make("td", {}, seconds(part.ranks[i]))))));
  });
  canvas.addEventListener("mouseleave", () => tip.hide());
  new ResizeObserver(draw).observe(frame);
  return { repaint: draw, node: make("figure", {}, frame, make("figcaption", {}, make("span", {}, each > 1 ? `${numbered} 0` : model.placeName(places[0])),
    make("span", {}, each > 1 ? `${each} ${numbered}s in a column` : `by ${model.placeWord}`, `; highest: ${seconds(most)}`),
    make("span", {}, each > 1 ? `${numbered} ${locations - 1}` : model.placeName(places[count - 1])))) };
}

addCard(20, time);
