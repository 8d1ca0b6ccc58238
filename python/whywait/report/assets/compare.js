// The comparison of two runs: its views and its keys.

import { Changes } from "./changes.js";
import { Comparison } from "./comparison.js";
import { Differences } from "./differences.js";
import { fill, make } from "./dom.js";
import { Frame, openPage } from "./frame.js";
import { address } from "./link.js";
import { Timelines } from "./timelines.js";

const VIEWS = { changes: "What changed", differences: "Differences" };

const HELP = [
  "A is the first run, B the second. Warm colors: more in B than in A; cool colors: less.",
  "The call tree shows the selected metric, the ranks show that metric at the selected call path. "
    + "A collapsed node shows its inclusive value, an expanded node its exclusive value. Rows that are equal in both runs are hidden by default.",
  "Call paths and metrics of the two runs are matched by name. The URL of the page is a link to the current selection.",
];

const KEYS = [
  ["↑ ↓", "previous, next row"],
  ["→ ←", "expand, collapse; move to the first child, to the parent"],
  ["Enter, Space", "expand or collapse"],
  ["Home, End, Page", "far"],
  ["1 2", "to metrics, call tree"],
  ["/", "search this tree; Enter: next match, Escape: end the search"],
  ["h", "follow the largest difference down"],
  ["o  e  l", "what changed, differences, timelines if the page has them"],
  ["+ −  0  [ ]", "timelines: zoom in, zoom out, whole run; more ranks, fewer ranks"],
  ["w  x", "timelines: next of the longest waits of A, of B"],
  ["t", "light or dark"],
  ["?", "this help"],
];

class App extends Frame {
  constructor(model) {
    super({ ...VIEWS, ...(Timelines.exist ? { timelines: "Timelines" } : {}) }, make("span", { class: "run" }, `A ${model.names[0]} · B ${model.names[1]}`), HELP, KEYS);
    this.changes = new Changes(model);
    this.differences = new Differences(model);
    this.timelines = new Timelines(model);
    this.follow();
  }

  follow() {
    const { shown, query } = this.arrive();
    const views = { changes: this.changes, differences: this.differences, timelines: this.timelines };
    fill(document.getElementById("view"), views[shown].node);
    if (shown === "changes") { scrollTo(0, 0); return; }
    if (shown === "timelines") { this.timelines.follow(query); return; }
    if (query.has("metric")) this.differences.follow(query);
    else if (this.been) this.differences.select(this.differences.metric, this.differences.call);
    else this.differences.follow(new URLSearchParams(this.start()));
    this.been = true;
  }

  // Start at the largest change, or with time if there is none.
  start() {
    const [largest] = this.differences.model.changes;
    return largest?.metric ? { metric: largest.metric, call: largest.call ?? 0 } : { metric: "time" };
  }

  key(event) {
    const { views, callView } = this.differences;
    /** @type {Record<string, () => void>} */
    const actions = {
      o: () => { location.hash = address("changes"); },
      e: () => { location.hash = address("differences"); },
    };
    if (Timelines.exist) actions.l = () => { location.hash = address("timelines"); };
    if (document.body.dataset.view === "timelines" && this.timelines.panes.length) Object.assign(actions, this.timelines.actions);
    if (document.body.dataset.view === "differences") {
      views.forEach((view, i) => { actions[i + 1] = () => view.scroller.focus(); });
      actions["/"] = () => (views.find((view) => view.node.contains(document.activeElement)) ?? views[1]).searchBox.focus();
      actions.h = () => callView.followLargest();
    }
    this.act(event, actions);
  }

  repaint() {
    for (const view of this.differences.views) if (view.rowOf) view.refresh();
    this.timelines.draw();
  }
}

openPage(Comparison.open(), (model) => new App(model));
