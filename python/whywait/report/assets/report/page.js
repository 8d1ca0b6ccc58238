// The report of one run.

import { make } from "../dom.js";
import { Frame, openPage } from "../frame.js";
import { Model } from "../model.js";

const HELP = [
  "Each pane shows values for the selection in the panes to its left: a metric, then its values in the program, "
    + "then the values of that call path on the machine. A collapsed node shows its inclusive value, an expanded node its exclusive value.",
  "Click a name to select it, ▸ to expand it. The URL of the page is a link to the current selection.",
];

openPage(Model.open(), (model) => new Frame(model, make("span", { class: "run", title: model.run.path }, model.run.name), HELP));
