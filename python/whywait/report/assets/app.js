// The report of one run: its views and its keys.

import { Communication } from "./communication.js";
import { fill, make } from "./dom.js";
import { Explorer, SHOWN } from "./explorer.js";
import { Frame, openPage } from "./frame.js";
import { Functions } from "./functions.js";
import { address } from "./link.js";
import { Model } from "./model.js";
import { Overview } from "./overview.js";
import { Timeline } from "./timeline.js";

const VIEWS = { overview: "Overview", explore: "Explorer", functions: "Functions", timeline: "Timeline", communication: "Communication" };

const HELP = [
  "Each pane shows values for the selection in the panes to its left: a metric, then its values in the program, "
    + "then the values of that call path on the machine. A collapsed node shows its inclusive value, an expanded node its exclusive value.",
  "Click a name to select it, ▸ to expand it. The URL of the page is a link to the current selection.",
];

const KEYS = [
  ["↑ ↓", "previous, next row"],
  ["→ ←", "expand, collapse; move to the first child, to the parent"],
  ["Enter, Space", "expand or collapse"],
  ["Home, End, Page", "first row, last row, one page"],
  ["1 2 3", "go to metrics, call tree, system"],
  ["/", "search this tree; Enter: next match, Escape: end the search"],
  ["h", "follow the largest value down"],
  ["%", "switch between values, shares of the root, and shares of the selection"],
  ["o  e  f  l  m", "overview, explorer, functions, timeline, communication"],
  ["+ −  0", "timeline: zoom in, zoom out, whole run"],
  ["[ ]", "timeline: more ranks, fewer ranks"],
  ["w", "timeline: next of the longest waits; Enter: its cause, Escape: none"],
  ["/", "timeline: find a function; Enter: its next call"],
  ["t", "light or dark"],
  ["?", "this help"],
];

class App extends Frame {
  constructor(model) {
    super(VIEWS, make("span", { class: "run", title: model.run.path }, model.run.name), HELP, KEYS);
    this.model = model;
    this.overview = new Overview(model);
    this.explorer = new Explorer(model);
    this.functions = new Functions(model);
    this.timeline = new Timeline(model);
    this.communication = new Communication(model);
    this.follow();
  }

  follow() {
    const { shown, query } = this.arrive();
    const views = {
      overview: this.overview, explore: this.explorer, functions: this.functions, timeline: this.timeline, communication: this.communication,
    };
    fill(document.getElementById("view"), views[shown].node);
    if (shown === "overview") { scrollTo(0, 0); return; }
    if (shown === "timeline") { this.timeline.follow(query); return; }
    if (shown === "communication") { scrollTo(0, 0); this.communication.follow(); return; }
    if (shown === "functions") { scrollTo(0, 0); this.functions.follow(); return; }
    if (query.has("metric")) this.explorer.follow(query);
    else if (this.been) this.explorer.select(this.explorer.metric, this.explorer.call, this.explorer.system);
    else this.explorer.follow(new URLSearchParams(this.start()));
    this.been = true;
  }

  // Start at the worst problem, or with time if there is none.
  start() {
    const [worst] = this.model.story.problems;
    return worst ? { metric: worst.metric, call: worst.callpath_id } : { metric: "time" };
  }

  key(event) {
    const { views, showChoice } = this.explorer;
    const actions = {
      o: () => { location.hash = address("overview"); },
      e: () => { location.hash = address("explore"); },
      l: () => { location.hash = address("timeline"); },
      f: () => { location.hash = address("functions"); },
      m: () => { location.hash = address("communication"); },
    };
    if (document.body.dataset.view === "timeline" && this.timeline.data) Object.assign(actions, this.timeline.actions);
    if (document.body.dataset.view === "explore") {
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
    this.act(event, actions);
  }

  // Computed colors do not follow the style sheet by themselves.
  repaint() {
    for (const view of this.explorer.views) if (view.rowOf) view.refresh();
    this.explorer.map.draw();
    this.timeline.draw();
    this.overview.redraw?.();
    this.overview.iterations.draw?.();
    this.communication.draw();
  }
}

openPage(Model.open(), (model) => new App(model));
