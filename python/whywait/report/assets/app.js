// The frame: what is on top, which view is shown, keys that work everywhere.

const VIEWS = { overview: "Overview", explore: "Explorer" };

const KEYS = [
  ["↑ ↓", "next, previous line"],
  ["→ ←", "open, close; to the first below, to the one above"],
  ["Enter, Space", "open or close"],
  ["Home, End, Page", "far"],
  ["1 2 3", "to metrics, call tree, system"],
  ["/", "find in this tree; Enter for the next, Escape to leave"],
  ["h", "follow the largest value down"],
  ["%", "values, shares of the root, shares of the selection"],
  ["o  e", "overview, explorer"],
  ["t", "light or dark"],
  ["?", "this help"],
];

class App {
  constructor(model) {
    this.model = model;
    this.overview = new Overview(model);
    this.explorer = new Explorer(model);
    this.build();
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    this.follow();
  }

  build() {
    this.links = Object.entries(VIEWS).map(([view, title]) => make("a", { href: address(view), "data-view": view }, title));
    fill(document.getElementById("top"),
      make("a", { class: "brand", href: address("overview") }, "why", make("b", {}, "wait")),
      make("nav", { "aria-label": "Views" }, this.links),
      make("span", { class: "run", title: this.model.run.path }, this.model.run.name),
      make("button", { type: "button", title: "Light or dark (t)", "aria-label": "Light or dark", onclick: () => this.toggleTheme() }, "◐"),
      make("button", { type: "button", title: "Keys and conventions (?)", "aria-label": "Help", onclick: () => this.help() }, "?"));
    const dialog = document.getElementById("help");
    fill(dialog, make("h2", {}, "How to read it"),
      make("p", {}, "Each pane shows what is selected in the panes to its left: a metric, then its values in the program, "
        + "then the values of that call path on the machine. A closed node shows its value with all below; an open one only its own."),
      make("p", {}, "Click on a name to select it, on ▸ to open it. The address of the page is a link to what is selected."),
      make("h2", {}, "Keys"), make("dl", {}, KEYS.map(([key, text]) => [make("dt", {}, key), make("dd", {}, text)])),
      make("form", { method: "dialog" }, make("button", {}, "Close")));
  }

  follow() {
    const { view, query } = readAddress();
    const shown = view in VIEWS ? view : "overview";
    for (const link of this.links) {
      if (link.dataset.view === shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    tip.hide();
    document.body.dataset.view = shown;
    fill(document.getElementById("view"), shown === "explore" ? this.explorer.node : this.overview.node);
    if (shown === "overview") { scrollTo(0, 0); return; }
    if (query.has("metric")) this.explorer.follow(query);
    else if (this.been) this.explorer.select(this.explorer.metric, this.explorer.call, this.explorer.system);
    else this.explorer.follow(new URLSearchParams(this.start()));
    this.been = true;
  }

  // Where to begin: at the worst problem, or else with the time.
  start() {
    const [worst] = this.model.story.problems;
    return worst ? { metric: worst.metric, call: worst.callpath_id } : { metric: "time" };
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, dialog *")) return;
    const { views, showChoice } = this.explorer;
    const exploring = document.body.dataset.view === "explore";
    const actions = {
      "?": () => this.help(),
      t: () => this.toggleTheme(),
      o: () => { location.hash = address("overview"); },
      e: () => { location.hash = address("explore"); },
    };
    if (exploring) {
      views.forEach((view, i) => { actions[i + 1] = () => view.scroller.focus(); });
      actions["/"] = () => (views.find((view) => view.node.contains(document.activeElement)) ?? views[1]).searchBox.focus();
      actions.h = () => this.explorer.callView.followLargest();
      actions["%"] = () => {
        const keys = SHOWN.map(([key]) => key);
        this.explorer.show = keys[(keys.indexOf(this.explorer.show) + 1) % keys.length];
        showChoice.show(this.explorer.show);
        this.explorer.refreshAll();
      };
    }
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  toggleTheme() {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    this.repaint();
  }

  // Colours that are computed do not follow the style sheet by themselves.
  repaint() {
    for (const view of this.explorer.views) if (view.rowOf) view.refresh();
    this.explorer.map.draw();
    this.overview.redraw?.();
  }

  help() {
    document.getElementById("help").showModal();
  }
}

Model.open().then((model) => {
  new App(model);
  document.documentElement.dataset.ready = "";
}, (error) => {
  fill(document.getElementById("view"), make("p", { class: "opening" }, `This report cannot be opened: ${error.message}. `
    + "It needs a browser of 2023 or later."));
  throw error;
});
