// Numbers as people read them: three digits that say something.

function digits(value) {
  const whole = Math.abs(value) >= 1 ? Math.floor(Math.log10(Math.abs(value) * 1.0005)) + 1 : 1;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: Math.max(0, 3 - whole), maximumFractionDigits: Math.max(0, 3 - whole),
  });
}

function seconds(value) {
  for (const [limit, factor, unit] of [[1, 1, "s"], [1e-3, 1e3, "ms"], [1e-6, 1e6, "µs"]]) {
    if (Math.abs(value) >= limit * 0.9995) return `${digits(value * factor)} ${unit}`;
  }
  return value ? `${Number((value * 1e9).toPrecision(3))} ns` : "0 s";
}

function counted(value) {
  if (Math.abs(value) < 1e6) return Math.round(value).toLocaleString("en-US");
  for (const [limit, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"]]) {
    if (Math.abs(value) >= limit) return `${digits(value / limit)} ${unit}`;
  }
}

function bytesText(value) {
  for (const [limit, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (Math.abs(value) >= limit) return `${digits(value / limit)} ${unit}`;
  }
  return `${Math.round(value)} B`;
}

function quantity(value, unit) {
  return unit === "sec" ? seconds(value) : unit === "bytes" ? bytesText(value) : counted(value);
}

function percent(share) {
  if (!Number.isFinite(share)) return "";
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${(100 * share).toFixed(1)}%`;
}

function plural(count, what) {
  return `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`;
}
