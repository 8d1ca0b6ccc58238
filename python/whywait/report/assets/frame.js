// The frame of a page: header, navigation, color theme, and the keys that work in all views.

import { dark } from "./color.js";
import { fill, make, tip } from "./dom.js";
import { address, readAddress } from "./link.js";

export class Frame {
  // `views`: titles by name, the first is the initial one; `run`: text at the right of the header; `help`: paragraphs;
  // `keys`: keys and their descriptions.
  constructor(views, run, help, keys) {
    this.titles = views;
    this.links = Object.entries(views).map(([view, title]) => make("a", { href: address(view), "data-view": view }, title));
    fill(document.getElementById("top"),
      // A full address: after a first link within the page, accessibility checkers would treat all links as skip links.
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

  // Hooks of a page: show the address, handle a key, and recompute colors.
  follow() {}

  /** @param {KeyboardEvent} _event */
  key(_event) {}

  repaint() {}

  // Shows the view that the address names, with its parameters, and marks it in the navigation.
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

  // Handles a key; `actions` are further ones of the view.
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
