// The names of kernels and copies on the rows of devices, where the picture shows shares of time.

export function nameKernels(paint, { context, x, y, rowHeight, gap, colors }, left) {
  if (rowHeight < 15) return;
  const { data } = paint;
  const { from, to, first, last } = paint.window;
  const { enter, leave, position } = data.calls;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let row = first; row < last; row++) {
    if (!data.isStream(row)) continue;
    for (let i = data.rowOf[row]; i < data.rowOf[row + 1] && enter[i] <= to; i++) {
      const begin = Math.max(left, x(enter[i]));
      const wide = Math.min(paint.width, x(leave[i])) - begin;
      if (leave[i] < from || wide <= 34) continue;
      context.save();
      context.beginPath();
      context.rect(begin, y(row), wide - 3, rowHeight - gap);
      context.clip();
      context.fillStyle = paint.ink(i, colors);
      context.fillText(data.callName(position[i]), begin + 4, y(row) + rowHeight / 2);
      context.restore();
    }
  }
}
