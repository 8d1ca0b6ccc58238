// Many runs: a scaling study, or a history.

import { documentBlock } from "../data.js";
import { make } from "../dom.js";
import { plural } from "../format.js";
import { Frame, openPage } from "../frame.js";

const HELP = [
  "Runs are ordered by number of processes, by date, or as given.",
  "Efficiencies follow POP: each is the product of those indented below it, 80% is acceptable, and scaling efficiencies refer to the first run.",
  "A scaling model describes how the average time of a process grows with the number of processes p, by a constant and one term. "
    + "Its error is how far it is off for a run that was left out of the fit.",
];

openPage(documentBlock("series"), (study) => {
  const { runs } = study;
  return new Frame(study, make("span", { class: "run" }, `${plural(runs.length, "run")}, ${runs[0].name} to ${runs.at(-1).name}`), HELP);
});
