// The state of the page as the fragment of its address, so that it can be shared:
// #explore?metric=mpi_latesender&call=11&system=4&show=root. A ~ after a node leaves out what is below it.

export function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, query: new URLSearchParams(query) };
}

// Notes the state of a view in the address, without a new entry in the browser's history. If a link was followed
// meanwhile, its address stays: the page learns of it only later.
export function noteAddress(view, query) {
  if (readAddress().view === view) history.replaceState(null, "", address(view, query));
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

// The address of a stretch of time with some context around it. A wait in it is selected: given by rank,
// thread, and a time in it.
export function timelineLink(enter, leave, wait = {}) {
  const room = 0.6 * (leave - enter);
  return address("timeline", { from: Math.max(0, enter - room).toFixed(9), to: (leave + room).toFixed(9), ...wait });
}
