// Source lines of regions, if the page contains them.

import { documentBlock } from "./data.js";
import { fill, make } from "./dom.js";

/** @type {Promise<Record<string, { file: string, begin: number, first: number, lines: string[], more: boolean }>> | null} */
let sources = null;
/** @type {HTMLDialogElement | null} */
let dialog = null;

// A button that shows the lines of a region; null if the page has no sources.
export function sourceButton(model, region) {
  if (!document.getElementById("data-sources")) return null;
  const button = make("button", { type: "button", class: "source-of", hidden: true, onclick: () => show(model, region) }, "Source");
  sources ??= documentBlock("sources");
  // Some files were not found.
  sources.then((known) => { button.hidden = known[region] === undefined; });
  return button;
}

async function show(model, region) {
  const { file, begin, first, lines, more } = (await sources)[region];
  if (!dialog) {
    dialog = make("dialog", { class: "source", "aria-label": "Source" });
    document.body.append(dialog);
  }
  const wide = String(first + lines.length).length;
  fill(dialog, make("h2", {}, model.regions[region].short), make("p", { class: "soft" }, `${file}, line ${begin}`),
    make("pre", { tabindex: "0" }, lines.map((text, i) => make("span", { class: first + i === begin ? "line begin" : "line" }, make("i", {}, String(first + i).padStart(wide)), ` ${text}\n`)),
      more && make("span", { class: "line" }, "…")),
    make("form", { method: "dialog" }, make("button", {}, "Close")));
  dialog.showModal();
}
