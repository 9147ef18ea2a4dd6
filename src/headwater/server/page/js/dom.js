// Elements from calls. Texts become text nodes, never markup: what events contain can't run.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `h("button", {class: "primary", onclick: go, disabled: false}, "Go", icon)`. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

/** Set an attribute, a listener (`onclick`), `class`, `dataset`, `style` (an object), or a property of forms. */
export function set(element, name, value) {
  if (value === undefined || value === null || value === false) {
    if (name === "value") element.value = "";
    else element.removeAttribute(name);
  } else if (name.startsWith("on") && typeof value === "function") {
    element.addEventListener(name.slice(2), value);
  } else if (name === "dataset") {
    Object.assign(element.dataset, value);
  } else if (name === "style") {
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else if (name === "value" || name === "checked" || name === "selected") {
    element[name] = value;
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Add children: elements, texts, numbers, lists of them; nothing for null and false. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Give an element other children. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Call a function at most once in so many milliseconds, the last call always. */
export function calmly(milliseconds, call) {
  let timer = null;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
