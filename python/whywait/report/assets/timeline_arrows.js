// Arrows on the timeline, from one row to another.

import { css } from "./color.js";

export const ARROWS = 300;

// The most costly arrows in the window; none if they would be only a small part. Each table comes with its dashes.
export function paintArrows(paint, picture, tables) {
  const { first, last, from, to } = paint.window;
  /** @type {[number[], number[], number[]][]} */
  const here = [];
  for (const [{ from_location: source, to_location: target, start, end }, dashes] of tables) {
    for (let i = 0; i < start.length; i++) {
      if (start[i] > to || end[i] < from || source[i] === target[i]) continue;
      if ((source[i] < first || source[i] >= last) && (target[i] < first || target[i] >= last)) continue;
      here.push([[start[i], source[i]], [end[i], target[i]], dashes]);
    }
  }
  const drawn = here.length > 3 * ARROWS ? [] : here.slice(0, ARROWS);
  for (const [start, end, dashes] of drawn) paintArrow(picture, start, end, css("--message"), dashes);
  return { arrows: drawn.length, here: here.length };
}

/**
 * @param {any} picture
 * @param {number[]} start when and at which location it begins
 * @param {number[]} end
 * @param {string} color
 * @param {number[]} dashes
 */
export function paintArrow({ context, x, y, rowHeight }, [start, source], [end, target], color, dashes, wide = 1) {
  const from = { x: x(start), y: y(source + 0.5) };
  const to = { x: x(end), y: y(target + 0.5) };
  const down = to.y > from.y;
  from.y += (down ? 0.3 : -0.3) * rowHeight;
  to.y += (down ? -0.45 : 0.45) * rowHeight;
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  context.strokeStyle = color;
  context.fillStyle = color;
  context.lineWidth = wide;
  context.setLineDash(dashes);
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(to.x, to.y);
  for (const turn of [-0.4, 0.4]) context.lineTo(to.x - 7 * Math.cos(angle + turn), to.y - 7 * Math.sin(angle + turn));
  context.fill();
}
