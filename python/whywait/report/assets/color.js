// The severity scale: one family of hues with perceptually uniform steps of lightness (OKLab), readable with any color
// vision and in print.

const SCALES = {
  // From the background to the highest severity: lightness, chroma, hue.
  light: [[0.975, 0.012, 85], [0.36, 0.13, 28]],
  dark: [[0.27, 0.02, 40], [0.93, 0.15, 95]],
};

export function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function rgb(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((part) => {
    const cut = Math.min(1, Math.max(0, part));
    return Math.round(255 * (cut <= 0.0031308 ? 12.92 * cut : 1.055 * cut ** (1 / 2.4) - 0.055));
  });
}

const scaleCache = {};

export function scaleColors() {
  const theme = dark() ? "dark" : "light";
  scaleCache[theme] ??= Array.from({ length: 256 }, (_, i) => {
    const at = i / 255;
    const [from, to] = SCALES[theme];
    // More chroma in the middle, where neighboring steps of lightness are hardest to distinguish.
    const chroma = from[1] + (to[1] - from[1]) * at + 0.06 * Math.sin(Math.PI * at);
    return `rgb(${rgb(from[0] + (to[0] - from[0]) * at, chroma, from[2] + (to[2] - from[2]) * at).join(" ")})`;
  });
  return scaleCache[theme];
}

export function severity(share) {
  return scaleColors()[Math.round(255 * Math.min(1, Math.max(0, share || 0)))];
}

// Whether text on a color of the scale should be light.
export function lightTextOn(share) {
  return dark() ? share < 0.45 : share > 0.5;
}

// A color of the theme mixed with that of cards: text in the color of ink can be read on shares of up to one half.
export function pale(name, share) {
  const [from, to] = ["--card", name].map((one) => [1, 3, 5].map((at) => Number.parseInt(css(one).slice(at, at + 2), 16)));
  return `rgb(${from.map((part, i) => Math.round(part + share * (to[i] - part))).join(" ")})`;
}

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
