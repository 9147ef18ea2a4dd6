// What a change adds, changes and removes, as a list; of a key that changes, what it was and what it will be.

import { h } from "../dom.js";
import { keysOf } from "./model.js";

const SIGNS = { added: "+", changed: "~", removed: "−" };
const said = (value) => (value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value));

/** Lines of a difference; null where there is none. `before` and `after` are documents, for the values of keys. */
export function changes(difference, before = null, after = null) {
  const { added = [], changed = {}, removed = [] } = difference ?? {};
  const lines = [
    ...added.map((name) => ["added", name]),
    ...Object.entries(changed).map(([name, keys]) => ["changed", name, keys]),
    ...removed.map((name) => ["removed", name]),
  ];
  if (!lines.length) return null;
  return h("ul", { class: "changes" }, lines.map(([what, name, keys = []]) => {
    const values = before?.nodes[name] && after?.nodes[name] && keys.filter((key) => key !== "kind");
    return h("li", { class: what }, h("span", { class: "sign", role: "img", "aria-label": what }, SIGNS[what]),
      h("div", null, h("strong", null, name), !values?.length && keys.length > 0 && h("span", { class: "muted" }, ` ${keys.join(", ")}`),
        values?.length > 0 && h("dl", { class: "facts" }, values.map((key) => [h("dt", { class: "mono" }, key),
          h("dd", { class: "mono" }, h("del", null, said(keysOf(before, name)[key])), h("ins", null, said(keysOf(after, name)[key])))]))));
  }));
}

/** How many nodes a difference touches. */
export function touched(difference) {
  const { added = [], changed = {}, removed = [] } = difference ?? {};
  return added.length + Object.keys(changed).length + removed.length;
}
