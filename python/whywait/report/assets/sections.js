// The registry of the views of a page. Each view adds itself, so no other file names it.

/**
 * A view on the page.
 *
 * @typedef {object} View
 * @property {Element} node
 * @property {(place: URLSearchParams) => void} [follow] shows a place, given by the parameters of an address
 * @property {() => void} [repaint] draws again: computed colors do not follow the style sheet by themselves
 * @property {Record<string, () => void>} [actions] what keys do while the view is shown, wherever the focus is
 */

/**
 * @typedef {object} Declaration
 * @property {string} name in addresses
 * @property {string} title in the navigation
 * @property {string} key the key that leads to the view
 * @property {number} order of the navigation
 * @property {[string, string][]} [keys] further keys and what they do, for the help
 * @property {() => boolean} [exists] whether the page has data for the view; by default, every page has
 * @property {new (model: any) => View} View
 */

/** @type {Declaration[]} */
const declared = [];

/** @param {Declaration} view */
export function addView(view) {
  declared.push(view);
}

// The views that the page has, in the order of the navigation.
export function allViews() {
  return declared.filter(({ exists }) => exists?.() ?? true).sort((a, b) => a.order - b.order);
}
