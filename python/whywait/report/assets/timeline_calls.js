// Individual calls of the window that is shown, from a server: all of a run can be too many for a page.

import { columnBlock, hasBlock } from "./data.js";

const WINDOW_BLOCK = "timeline-window";
// More calls are not asked for; the server's limit is half of this, because the estimate is rough.
const ESTIMATED = 200_000;
// The window is widened by this share on each side, so that small moves need no further request.
const WIDER = 0.25;
const PATIENCE = 80;

export class CallsOnDemand {
  // `show` is called when calls have arrived.
  constructor(data, show) {
    this.data = data;
    this.show = show;
    this.possible = hasBlock(WINDOW_BLOCK) && data.calls.location.length < data.totals.calls;
    /** The window whose calls were asked for last. @type {{ from: number, to: number, first: number, last: number } | null} */
    this.asked = null;
  }

  // Asks for the calls of a window, unless it has been asked for, or has too many.
  want(window) {
    if (!this.possible || this.data.covers(window)) return;
    const { data } = this;
    const share = ((window.to - window.from) / data.length) * ((window.last - window.first) / data.count);
    if (share * data.totals.calls > ESTIMATED || (this.asked && contains(this.asked, window))) return;
    const more = (window.to - window.from) * WIDER;
    const asked = { ...window, from: Math.max(0, window.from - more), to: Math.min(data.length, window.to + more) };
    this.asked = asked;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(asked), PATIENCE);
  }

  async ask(asked) {
    const entries = Object.entries({ ...asked, rows: this.data.count });
    const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
    const found = await columnBlock(WINDOW_BLOCK, query);
    // What was asked for later is what is shown.
    if (this.asked !== asked || found.location.length === 0) return;
    this.data.take({ ...found, classes: this.data.calls.classes }, asked);
    this.data.takeWaits(found);
    this.show();
  }
}

export function contains(outer, inner) {
  return outer.from <= inner.from && outer.to >= inner.to && outer.first <= inner.first && outer.last >= inner.last;
}
