// Who owns the locks that others wait for: bars at the bottom of the rows of the timeline, in the color of the lock.

// Rows of at least this height have bars.
const BAR_ROW = 10;

// Distant hues for the locks of a process.
export function lockColor(lock) {
  return `hsl(${((320 + lock * 137.508) % 360).toFixed(1)} 75% 42%)`;
}

export function paintLocks(paint, { context, x, y, rowHeight, gap }, ground) {
  const { location, lock, begin, end } = paint.data.locks;
  if (rowHeight < BAR_ROW) return;
  const { from, to, first, last } = paint.window;
  const high = Math.min(7, Math.max(2, rowHeight / 8));
  for (let i = 0; i < begin.length; i++) {
    if (location[i] < first || location[i] >= last || begin[i] > to || end[i] < from) continue;
    const left = x(Math.max(begin[i], from));
    const wide = Math.max(1, x(Math.min(end[i], to)) - left);
    const top = y(location[i]) + rowHeight - gap - high;
    context.fillStyle = ground;
    context.fillRect(left, top - 1, wide, high + 1);
    context.fillStyle = lockColor(lock[i]);
    context.fillRect(left, top, wide, high);
  }
}

// The known ownerships of a thread at a time.
export function ownedAt({ location, begin, end }, row, time) {
  return Array.from(begin.keys()).filter((i) => location[i] === row && begin[i] <= time && end[i] >= time);
}
