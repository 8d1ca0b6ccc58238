// The frame of a page: what is on top, which view is shown, light or dark, and what works everywhere.

import { dark } from "./color.js";
import { fill, make, tip } from "./dom.js";
import { address, readAddress } from "./link.js";

export class Frame {
  // `views`: titles by name, the first is shown at the beginning; `run`: what stands at the right of the top; `help`:
  // paragraphs; `keys`: keys and what they do.
  constructor(views, run, help, keys) {
    this.titles = views;
    this.links = Object.entries(views).map(([view, title]) => make("a", { href: address(view), "data-view": view }, title));
    fill(document.getElementById("top"),
      // A whole address: behind a first link within the page, readers of a screen would take all links for ways to skip.
      make("a", { class: "brand", href: location.href.split("#")[0] + address(Object.keys(views)[0]) }, "why", make("b", {}, "wait")),
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
  }

  // What each page does by itself: show what the address names, what a key does, and colors that are computed.
  follow() {}

  /** @param {KeyboardEvent} _event */
  key(_event) {}

  repaint() {}

  // The view that the address names, with what it asks of it; marked in the navigation.
  arrive() {
    const { view, query } = readAddress();
    const shown = view in this.titles ? view : Object.keys(this.titles)[0];
    for (const link of this.links) {
      if (link.dataset.view === shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    tip.hide();
    document.body.dataset.view = shown;
    return { shown, query };
  }

  // Do what a key stands for; `actions` are those of the view besides these.
  act(event, actions) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, dialog *")) return;
    const all = { "?": () => this.help(), t: () => this.toggleTheme(), ...actions };
    if (!(event.key in all)) return;
    event.preventDefault();
    all[event.key]();
  }

  toggleTheme() {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    this.repaint();
  }

  help() {
    /** @type {HTMLDialogElement} */ (document.getElementById("help")).showModal();
  }
}

// Show what has been read, or say why not.
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
