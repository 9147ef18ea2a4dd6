// Tabs: one of several panels at a time, changed with the mouse or the arrow keys.

import { h } from "../dom.js";

let numbered = 0;

/** `tabs([[name, words, element]…], {label, chosen, changed, end})`: an element, `show(name)` and `chosen()`. */
export function tabs(panels, { label, chosen, changed, end }) {
  const id = `tabs-${(numbered += 1)}`;
  let current = panels.some(([name]) => name === chosen) ? chosen : panels[0][0];
  const buttons = panels.map(([name, words]) => h("button", { type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": `${id}-${name}-panel`, onclick: () => show(name) }, words));
  const boxes = panels.map(([name, , element]) => h("div", { class: "tab-panel", role: "tabpanel", id: `${id}-${name}-panel`, "aria-labelledby": `${id}-${name}` }, element));
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons);
  const element = h("div", { class: "tabbed" }, h("div", { class: "tabs-line" }, list, end), boxes);

  list.addEventListener("keydown", (event) => {
    const at = panels.findIndex(([name]) => name === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: panels.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + panels.length) % panels.length;
    show(panels[next][0]);
    buttons[next].focus();
  });

  function show(name) {
    const other = name !== current;
    current = name;
    for (const [at, [own]] of panels.entries()) {
      buttons[at].setAttribute("aria-selected", String(own === name));
      buttons[at].tabIndex = own === name ? 0 : -1;
      boxes[at].hidden = own !== name;
    }
    if (other) changed?.(name);
  }

  show(current);
  return { element, show, chosen: () => current };
}
