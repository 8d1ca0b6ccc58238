// The state of the page as the fragment of its address, so that it can be shared:
// #explore?metric=mpi_latesender&call=11&system=4&show=root. A ~ after a node leaves out what is below it.

export function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, query: new URLSearchParams(query) };
}

// A number in an address.
export function numberIn(query, name, otherwise) {
  const value = Number.parseFloat(query.get(name));
  return Number.isFinite(value) ? value : otherwise;
}

export function address(view, query = {}) {
  const text = new URLSearchParams(query).toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

export function nodeText(name, self) {
  return self ? `${name}~` : String(name);
}

export function readNode(text) {
  if (text === null) return { name: undefined, self: false };
  return text.endsWith("~") ? { name: text.slice(0, -1), self: true } : { name: text, self: false };
}

export function exploreLink(metric, callpath, place) {
  return address("explore", {
    metric, ...(callpath === undefined ? {} : { call: callpath }), ...(place === undefined ? {} : { system: place }),
  });
}

// The address of a wait with some context around it.
export function timelineLink(enter, leave) {
  const room = 0.6 * (leave - enter);
  return address("timeline", { from: Math.max(0, enter - room).toFixed(9), to: (leave + room).toFixed(9) });
}
