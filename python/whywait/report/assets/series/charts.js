// Charts of many runs: stacked bars, lines, and one value with its scaling model.

import { choice, fill, make, tip } from "../dom.js";
import { percent, plural, quantity, seconds } from "../format.js";

const COMMUNICATION = new Set(["communication"]);
// The quantities and units of bars: see figures 5.2, 5.3 and 5.6 of Hermanns, "Understanding the formation of wait
// states in one-sided communication" (RWTH Aachen, 2017).
const WHAT = [["all", "All time", "All that threads do"], ["communication", "Communication", "Only time in MPI, OpenSHMEM, ARMCI, GASPI, and UPC"]];
const SCALINGS = [["share", "Share", "Shares of what is shown"], ["each", "Per process", "Average seconds of a process"], ["total", "Total", "Seconds of all processes and threads"]];
// Charts scale with the page: on a narrow one fewer units keep texts readable.
const WIDTH = matchMedia("(max-width: 560px)").matches ? 400 : 720;
const HEIGHT = 260;
const LEFT = 62;
const RIGHT = 62;
const TOP = 14;
const BOTTOM = 40;
// Counts that differ by more than this factor have a logarithmic axis.
const ORDERS = 50;
// So do numbers of processes that grow by at least this factor.
const FACTORS = 4;

// Round ticks of an axis from zero to at least `most`.
export function steps(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, i) => i * step);
}

// The header of each run's column.
export function runHeads({ runs, over }) {
  return runs.map((run) => make("th", { scope: "col", title: [run.name, run.date].filter(Boolean).join(", ") },
    over === "processes" ? plural(run.processes, "rank") : over === "date" ? run.date : run.name));
}

// The label below a run.
export function runName(study, run) {
  return study.over === "processes" ? run.processes.toLocaleString("en-US") : study.over === "date" ? run.date.slice(0, 10) : run.name;
}

// Ticks of a logarithmic axis: powers of ten.
export function decades(least, most) {
  const [first, last] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

// Powers of two that enclose the values, about eight at most.
export function doublings(least, most) {
  const [first, last] = [Math.floor(Math.log2(least) + 1e-9), Math.ceil(Math.log2(most) - 1e-9)];
  const step = Math.max(1, Math.ceil((last - first) / 8));
  return Array.from({ length: Math.ceil(Math.max(1, last - first) / step) + 1 }, (_, i) => 2 ** (first + i * step));
}

// A factor such as a speedup.
export function factorText(value) {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}

// Positions of run labels without overlap.
function shownLabels(count) {
  const every = Math.ceil(count / 12);
  return (i) => i % every === 0 || i === count - 1;
}

function axis(marks, most, text, height = HEIGHT) {
  const y = (value) => height - BOTTOM - ((height - TOP - BOTTOM) * value) / most;
  return [y, marks.map((value) => [
    make("svg:line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
    make("svg:text", { x: LEFT - 6, y: y(value) + 4, class: "left" }, text(value)),
  ])];
}

export class Stacks {
  constructor(study) {
    this.study = study;
    this.what = "all";
    this.scale = "share";
    this.count = "";
    this.figure = make("figure", { class: "stacks" });
    this.legend = make("div", { class: "swatches" });
    const what = choice("What bars show", WHAT, this.what, (key) => { this.what = key; this.draw(); });
    const scale = choice("Scale of bars", SCALINGS, this.scale, (key) => { this.scale = key; this.draw(); });
    const counts = make("select", { "aria-label": "Count to draw as a line", onchange: () => { this.count = counts.value; this.draw(); } },
      make("option", { value: "" }, "no line"), study.counts.map((count) => make("option", { value: count.name }, `line: ${count.label}`)));
    this.colors = this.colored();
    this.node = make("section", { class: "card" },
      make("header", { class: "toolbar" }, make("h2", {}, "Where the time goes"), what.node, scale.node, study.counts.length > 0 && counts),
      this.figure, this.legend);
    this.draw();
  }

  // A branch and its waiting share a color; waiting is hatched. Branches of communication differ by hue.
  colored() {
    const hues = { communication: ["--time-p2p", "--time-collective", "--time-onesided", "--work-1", "--threads-1"] };
    return new Map(this.study.parts.map(({ metric, family, shade }) => [metric,
      family in hues ? `var(${hues[family][shade]})` : `var(--${family === "waiting" ? "work" : family}-${shade})`]));
  }

  shownParts() {
    return this.study.parts.filter((part) => this.what === "all" || COMMUNICATION.has(part.family));
  }

  // The value of each part in each run, as it is drawn.
  scaled(parts) {
    const { runs } = this.study;
    const whole = runs.map((_, i) => parts.reduce((sum, part) => sum + part.values[i], 0));
    const by = { share: (value, i) => (whole[i] ? value / whole[i] : 0), each: (value, i) => value / runs[i].processes, total: (value) => value };
    return parts.map((part) => part.values.map(by[this.scale]));
  }

  draw() {
    const { runs } = this.study;
    const parts = this.shownParts();
    const values = this.scaled(parts);
    const sums = runs.map((_, i) => values.reduce((sum, of) => sum + of[i], 0));
    const text = this.scale === "share" ? (value) => percent(value) || "0%" : (value) => (value ? seconds(value) : "0");
    const marks = steps(Math.max(...sums));
    const [y, grid] = axis(marks, marks.at(-1), text);
    const step = (WIDTH - LEFT - RIGHT) / runs.length;
    const wide = Math.min(56, step * 0.72);
    const isShown = shownLabels(runs.length);
    const bars = runs.map((run, i) => {
      let below = 0;
      const left = LEFT + step * (i + 0.5) - wide / 2;
      return make("svg:g", {}, parts.map((part, number) => {
        const value = values[number][i];
        const [from, to] = [y(below), y(below + value)];
        below += value;
        if (!(from - to > 0.05)) return null;
        const place = { x: left, y: to, width: wide, height: from - to };
        const over = {
          onmousemove: (event) => tip.show(event, make("b", {}, part.label), make("br"), `${text(value)} in ${run.name} (${plural(run.processes, "rank")})`),
          onmouseleave: () => tip.hide(),
        };
        return [make("svg:rect", { ...place, class: "bar-part", "data-part": part.label, style: { fill: this.colors.get(part.metric) }, ...over }),
          part.waits && make("svg:rect", { ...place, class: "hatched", fill: "url(#hatch)", ...over })];
      }), isShown(i) && make("svg:text", { x: left + wide / 2, y: HEIGHT - BOTTOM + 16, class: "middle" }, runName(this.study, run)));
    });
    const title = { processes: "processes", date: "date", order: "run" }[this.study.over];
    const picture = make("svg:svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot-lines", "aria-label": this.spoken(parts, values, text) },
      make("svg:defs", {}, make("svg:pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        make("svg:rect", { width: 2.4, height: 6, class: "hatch" }))),
      grid, bars, this.line(this.counted(), step),
      make("svg:text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, class: "middle title" }, title));
    fill(this.figure, picture);
    // The legend omits parts that no bar shows.
    const isSeen = (_, number) => values[number].some((value, i) => value > 0.0005 * sums[i]);
    fill(this.legend, parts.filter(isSeen).map((part) => make("span", {}, make("i", { class: `swatch${part.waits ? " waiting" : ""}`, style: { "--color": this.colors.get(part.metric) } }), part.label)),
      this.counted().map((count, number) => make("span", {}, make("i", { class: `swatch count${number ? " part" : ""}` }), count.label)));
  }

  // The plotted count and its parts.
  counted() {
    const { counts } = this.study;
    return [...counts.filter((count) => count.name === this.count), ...counts.filter((count) => this.count && count.part_of === this.count)];
  }

  spoken(parts, values, text) {
    const last = this.study.runs.length - 1;
    return `Where the time goes in each run; in the last one ${parts.map((part, i) => `${part.label} ${text(values[i][last])}`).join(", ")}`;
  }

  // Counts over the bars, with their own axis on the right: logarithmic if they differ by orders of magnitude. Zeros
  // cannot be shown on a logarithmic axis and are omitted.
  line(counts, step) {
    if (!counts.length) return null;
    const positive = counts.flatMap((count) => count.values).filter((value) => value > 0);
    const [least, most] = [Math.min(...positive), Math.max(...positive)];
    const isLogarithmic = most > ORDERS * least;
    const marks = isLogarithmic ? decades(least, most) : steps(Math.max(0, most));
    const place = isLogarithmic ? (value) => Math.log10(value / marks[0]) / Math.log10(marks.at(-1) / marks[0]) : (value) => value / marks.at(-1);
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * place(value);
    return make("svg:g", { class: "count-line" }, counts.map((count, number) => {
      const shown = count.values.map((value, i) => ({ value, x: LEFT + step * (i + 0.5) })).filter(({ value }) => value > 0 || !isLogarithmic);
      return make("svg:g", { class: number ? "part" : undefined }, make("svg:polyline", { points: shown.map(({ value, x }) => `${x},${y(value)}`).join(" ") }),
        shown.map(({ value, x }) => make("svg:circle", { cx: x, cy: y(value), r: 4,
          onmousemove: (event) => tip.show(event, make("b", {}, count.label), make("br"), quantity(value, count.unit)), onmouseleave: () => tip.hide() })));
    }), marks.map((value) => make("svg:text", { x: WIDTH - RIGHT + 6, y: y(value) + 4 }, quantity(value, counts[0].unit))));
  }
}

// Lines over equidistant runs. With `along`, their numbers of processes, both axes are logarithmic if these grow by
// factors, so that an ideal speedup is a straight line.
export function lines(title, runs, rows, { text, most = 0, along = null, named = (i) => runs[i].name }) {
  const known = rows.flatMap((row) => row.values.filter((value) => value !== null));
  const isLogarithmic = along && along[0] > 0 && along.at(-1) >= FACTORS * along[0] && known.every((value) => value > 0);
  const marks = isLogarithmic ? doublings(Math.min(...known), Math.max(...known)) : steps(Math.max(most, ...known));
  const scale = isLogarithmic ? (value) => Math.log2(value / marks[0]) : (value) => value;
  const [height, grid] = axis(marks.map(scale), scale(marks.at(-1)), (mark) => text(isLogarithmic ? marks[0] * 2 ** mark : mark));
  const y = (value) => height(scale(value));
  const width = WIDTH - LEFT - RIGHT;
  const places = along && (isLogarithmic ? along.map((count) => Math.log2(count / along[0])) : along);
  const x = (i) => LEFT + (places ? (width * places[i]) / places.at(-1) : runs.length > 1 ? (width * i) / (runs.length - 1) : width / 2);
  const isShown = shownLabels(runs.length);
  const shown = runs.map((_, i) => i).filter((i) => (along ? i === runs.length - 1 || x(i + 1) - x(i) > 40 : isShown(i)));
  const drawn = rows.map((row, number) => {
    const points = row.values.map((value, i) => (value === null ? null : [x(i), y(value)])).filter(Boolean);
    return make("svg:g", { class: `line line-${row.faint ? "faint" : number}` }, make("svg:polyline", { points: points.map((point) => point.join(",")).join(" ") }),
      !row.faint && row.values.map((value, i) => value !== null && make("svg:circle", { cx: x(i), cy: y(value), r: 3.5,
        onmousemove: (event) => tip.show(event, make("b", {}, row.label), make("br"), `${text(value)} in ${runs[i].name} (${plural(runs[i].processes, "rank")})`),
        onmouseleave: () => tip.hide() })));
  });
  const spoken = rows.map((row) => `${row.label} ${row.values.map((value) => (value === null ? "unknown" : text(value))).join(", ")}`).join("; ");
  return make("figure", { class: "lines" }, make("svg:svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot-lines", "aria-label": `${title}: ${spoken}` }, grid, drawn,
    shown.map((i) => make("svg:text", { x: x(i), y: HEIGHT - BOTTOM + 16, class: "middle" }, along ? along[i].toLocaleString("en-US") : runs.length > 8 && named(i).length > 8 ? String(i + 1) : named(i))),
    along && make("svg:text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, class: "middle title" }, "processes")),
  make("figcaption", {}, make("span", { class: "swatches" }, rows.map((row, number) => make("span", {}, make("i", { class: `swatch key-${row.faint ? "faint" : number}` }), row.label)))));
}

// The value of a model for p processes.
export function predict(model, p) {
  return model.constant + (model.coefficient ? model.coefficient * p ** model.power * Math.log2(p) ** model.log_power : 0);
}

// A value over the runs as points, and its model as a line that extends to the prediction.
export function curve(runs, values, model, at) {
  const [width, height] = [150, 34];
  const sizes = runs.map((run) => run.processes);
  const places = model ? sizes.map((size) => Math.log2(size)) : runs.map((_, i) => i);
  const first = places[0];
  const last = model ? Math.log2(at) : places.at(-1);
  const most = Math.max(...values, model ? predict(model, at) : 0) || 1;
  const x = (place) => 3 + ((width - 6) * (place - first)) / (last - first || 1);
  const y = (value) => height - 3 - ((height - 6) * Math.max(0, value)) / most;
  const bends = model ? Array.from({ length: 25 }, (_, i) => first + ((last - first) * i) / 24) : [];
  return make("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "course", "aria-hidden": "true" },
    model ? make("svg:polyline", { class: "model-line", points: bends.map((place) => `${x(place)},${y(predict(model, 2 ** place))}`).join(" ") })
      : make("svg:polyline", { points: values.map((value, i) => `${x(places[i])},${y(value)}`).join(" ") }),
    values.map((value, i) => make("svg:circle", { cx: x(places[i]), cy: y(value), r: 2.2 })));
}
