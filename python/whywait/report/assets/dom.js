// Creates elements. Strings become text nodes, so that no name in a trace is interpreted as markup.

export function make(tag, attributes = {}, ...children) {
  const drawn = tag.startsWith("svg:");
  const node = drawn
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style" && typeof value === "object") {
      for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    } else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...present(children));
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren(...present(children));
  return node;
}

// Children may be nested arrays; null, undefined and false are skipped.
export function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

// A part of a page with a title, and a sentence that says what it shows.
export function card(title, lead, ...content) {
  return make("section", { class: "card" }, make("h2", {}, title), lead && make("p", { class: "lead" }, lead), content);
}

// A heading for screen readers; the navigation shows the same to sighted users.
export function hiddenHeading(text) {
  return make("h1", { class: "hidden" }, text);
}

// The tooltip that all elements share.
export const tip = {
  show(event, ...content) {
    const node = document.getElementById("tip");
    fill(node, ...content);
    node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = node;
    const left = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
    const top = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
    node.style.left = `${Math.max(4, left)}px`;
    node.style.top = `${Math.max(4, top)}px`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};

// A segmented control: one of a few options.
export function choice(label, options, value, change) {
  const buttons = new Map(options.map(([key, text, hint]) => [key, make("button", {
    type: "button", role: "radio", title: hint, "data-key": key,
    onclick: () => { show(key); change(key); },
  }, text)]));
  const show = (chosen) => {
    for (const [key, button] of buttons) button.setAttribute("aria-checked", String(key === chosen));
  };
  show(value);
  return { node: make("div", { class: "choice", role: "radiogroup", "aria-label": label }, [...buttons.values()]), show };
}
