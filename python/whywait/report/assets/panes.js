// Panes side by side or stacked, with draggable separators between them.

import { make } from "./dom.js";

const LEAST = 0.12;
const STEP = 0.05;

// Places panes in a grid; `sizes`: initial shares; `across`: whether they are side by side; `before`: grid tracks
// before them; `names`: of the panes, for screen readers.
/**
 * @param {HTMLElement} node
 * @param {HTMLElement[]} panes
 * @param {{ sizes: number[], names: string[], across?: boolean, before?: string }} options
 */
export function resizable(node, panes, { sizes, names, across = true, before = "" }) {
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  const first = sizes.map((size) => size / whole);
  let now = [...first];
  const bars = panes.slice(1).map((_, i) => make("div", {
    class: `bar-between ${across ? "across" : "down"}`, role: "separator", tabindex: "0",
    "aria-orientation": across ? "vertical" : "horizontal", "aria-label": `Size of ${names[i]} and ${names[i + 1]}`,
    title: "Drag or press an arrow key to resize; double-click to reset",
    onpointerdown: (event) => grab(event, i), onpointermove: (event) => drag(event), onpointerup: () => { held = null; },
    ondblclick: () => { now = [...first]; apply(); },
    onkeydown: (event) => {
      const step = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      move(i, now[i] + step);
    },
  }));
  /** @type {{ i: number, at: number, size: number } | null} */
  let held = null;
  const place = (event) => (across ? event.clientX : event.clientY);

  function grab(event, i) {
    bars[i].setPointerCapture(event.pointerId);
    held = { i, at: place(event), size: now[i] };
  }

  function drag(event) {
    if (!held) return;
    const room = panes.reduce((sum, pane) => sum + (across ? pane.offsetWidth : pane.offsetHeight), 0);
    move(held.i, held.size + (place(event) - held.at) / room);
  }

  // Sets the share of a pane; the next one gets the rest of both.
  function move(i, share) {
    const both = now[i] + now[i + 1];
    now[i] = Math.min(both - LEAST, Math.max(LEAST, share));
    now[i + 1] = both - now[i];
    apply();
  }

  function apply() {
    const tracks = now.map((size) => `minmax(0, ${size.toFixed(4)}fr)`).join(" 10px ");
    node.style.setProperty(across ? "grid-template-columns" : "grid-template-rows", `${before}${tracks}`);
    bars.forEach((bar, i) => {
      bar.setAttribute("aria-valuenow", String(Math.round((100 * now[i]) / (now[i] + now[i + 1]))));
    });
  }

  node.append(...panes.flatMap((pane, i) => (i ? [bars[i - 1], pane] : [pane])));
  apply();
  return node;
}
