// Human-readable numbers, with three significant digits.

const TIMES = [{ limit: 1, factor: 1, unit: "s" }, { limit: 1e-3, factor: 1e3, unit: "ms" }, { limit: 1e-6, factor: 1e6, unit: "µs" }];
const COUNTS = [{ limit: 1e12, unit: "T" }, { limit: 1e9, unit: "G" }, { limit: 1e6, unit: "M" }];
const SIZES = [
  { limit: 2 ** 40, unit: "TiB" }, { limit: 2 ** 30, unit: "GiB" }, { limit: 2 ** 20, unit: "MiB" }, { limit: 2 ** 10, unit: "KiB" },
];

export function digits(value) {
  const whole = Math.abs(value) >= 1 ? Math.floor(Math.log10(Math.abs(value) * 1.0005)) + 1 : 1;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: Math.max(0, 3 - whole), maximumFractionDigits: Math.max(0, 3 - whole),
  });
}

// The name of a place: a rank, one of its threads, or one of its streams.
export function placeName(rank, thread, stream, threaded) {
  if (stream !== undefined) return `rank ${rank}, ${stream}`;
  return threaded ? `rank ${rank}, thread ${thread}` : `rank ${rank}`;
}

// Shorter than any clock resolution: smaller values are rounding errors.
const TICK = 0.5e-9;

export function seconds(value) {
  if (Math.abs(value) < TICK) return "0 s";
  for (const { limit, factor, unit } of TIMES) {
    if (Math.abs(value) >= limit * 0.9995) return `${digits(value * factor)} ${unit}`;
  }
  return `${Number((value * 1e9).toPrecision(3))} ns`;
}

// A time of the run, with enough digits to resolve 0.4% of a span.
export function clock(time, span) {
  const decimals = span > 0 ? Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(span)))) : 3;
  return `${time.toFixed(decimals)} s`;
}

export function counted(value) {
  for (const { limit, unit } of COUNTS) {
    if (Math.abs(value) >= limit) return `${digits(value / limit)} ${unit}`;
  }
  return Math.round(value).toLocaleString("en-US");
}

function bytesText(value) {
  for (const { limit, unit } of SIZES) {
    if (Math.abs(value) >= limit) return `${digits(value / limit)} ${unit}`;
  }
  return `${Math.round(value)} B`;
}

export function quantity(value, unit) {
  if (unit === "sec") return seconds(value);
  if (unit === "bytes") return bytesText(value);
  return Number.isInteger(value) || Math.abs(value) >= 100 ? counted(value) : digits(value);
}

// Times and sizes come with their unit, and occurrences have none.
export function withUnit(value, unit) {
  return ["sec", "bytes", "occ", "#", ""].includes(unit) ? quantity(value, unit) : `${quantity(value, unit)} ${unit}`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return "";
  // What would read as none or all, but is not.
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share > 0.9995 && share < 1 - 1e-9) return ">99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

export function plural(count, what) {
  return `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : /(s|x|ch|sh)$/.test(what) ? "es" : "s"}`;
}
