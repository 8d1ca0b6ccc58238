// The comparison of two runs.

import { make } from "../dom.js";
import { Frame, openPage } from "../frame.js";
import { Comparison } from "./model.js";

const HELP = [
  "A is the first run, B the second. Warm colors: more in B than in A; cool colors: less.",
  "The call tree shows the selected metric, the ranks show that metric at the selected call path. "
    + "A collapsed node shows its inclusive value, an expanded node its exclusive value. Rows that are equal in both runs are hidden by default.",
  "Call paths and metrics of the two runs are matched by name. The URL of the page is a link to the current selection.",
];

openPage(Comparison.open(), (model) => new Frame(model, make("span", { class: "run" }, `A ${model.names[0]} · B ${model.names[1]}`), HELP));
