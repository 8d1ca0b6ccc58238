// The frame of a page: header, navigation, color theme, and keys. It knows the views only by what they declare.

import { dark } from "./color.js";
import { fill, make, tip } from "./dom.js";
import { address, readAddress } from "./link.js";
import { allViews } from "./sections.js";

export class Frame {
  // `run`: text at the right of the header; `help`: paragraphs.
  constructor(model, run, help) {
    const declared = allViews();
    this.views = new Map(declared.map(({ name, View }) => [name, new View(model)]));
    this.keys = Object.fromEntries(declared.map(({ name, key }) => [key, () => { location.hash = address(name); }]));
    this.links = declared.map(({ name, title }) => make("a", { href: address(name), "data-view": name }, title));
    this.first = declared[0].name;
    const keys = [
      [declared.map(({ key }) => key).join("  "), declared.map(({ title }) => title.toLowerCase()).join(", ")],
      ...declared.flatMap((view) => view.keys ?? []), ["t", "light or dark"], ["?", "this help"],
    ];
    fill(document.getElementById("top"),
      // A full address: after a first link within the page, accessibility checkers would treat all links as skip links.
      make("a", { class: "brand", href: location.href.split("#")[0] + address(this.first) }, "why", make("b", {}, "wait")),
      make("nav", { "aria-label": "Views" }, this.links),
      run,
      make("button", { type: "button", title: "Light or dark (t)", "aria-label": "Light or dark", onclick: () => this.toggleTheme() }, "◐"),
      make("button", { type: "button", title: "Keys and conventions (?)", "aria-label": "Help", onclick: () => this.help() }, "?"));
    fill(document.getElementById("help"), make("h2", {}, "How to read it"), help.map((text) => make("p", {}, text)),
      make("h2", {}, "Keys"), make("dl", {}, keys.map(([key, text]) => [make("dt", {}, key), make("dd", {}, text)])),
      make("form", { method: "dialog" }, make("button", {}, "Close")));
    // The address names the view, so this link must not change it.
    document.querySelector(".skip")?.addEventListener("click", (event) => { event.preventDefault(); document.getElementById("view").focus(); });
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    this.follow();
  }

  // Shows the place that the address names.
  follow() {
    const { view, query } = readAddress();
    const shown = this.views.has(view) ? view : this.first;
    for (const link of this.links) {
      if (link.dataset.view === shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    tip.hide();
    /** @type {HTMLDialogElement} */ (document.getElementById("help")).close();
    // A view that was not shown before begins at its top.
    if (document.body.dataset.view !== shown) scrollTo(0, 0);
    document.body.dataset.view = shown;
    this.shown = this.views.get(shown);
    fill(document.getElementById("view"), this.shown.node);
    this.shown.follow?.(query);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, dialog *")) return;
    const actions = { "?": () => this.help(), t: () => this.toggleTheme(), ...this.keys, ...this.shown.actions };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  repaint() {
    for (const view of this.views.values()) view.repaint?.();
  }

  toggleTheme() {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    this.repaint();
  }

  help() {
    /** @type {HTMLDialogElement} */ (document.getElementById("help")).showModal();
  }
}

// Shows the page once its data are read, or the reason why they cannot be.
export function openPage(reading, show) {
  reading.then((model) => {
    show(model);
    document.documentElement.dataset.ready = "";
  }, (error) => {
    fill(document.getElementById("view"), make("p", { class: "opening" }, `This report cannot be opened: ${error.message}. `
      + "It needs a browser of 2023 or later."));
    throw error;
  });
}
