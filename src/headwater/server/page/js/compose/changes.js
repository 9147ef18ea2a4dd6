// What a change adds, changes and removes, as a list.

import { h } from "../dom.js";

const SIGNS = { added: "+", changed: "~", removed: "−" };

/** Lines of a difference; null where there is none. `changed` is {node: [keys]}. A text is shown as it is. */
export function changes(difference) {
  if (!difference) return null;
  if (typeof difference === "string") return difference.trim() ? h("pre", { class: "code" }, difference) : null;
  const changed = Array.isArray(difference.changed) ? difference.changed.map((name) => [name, []]) : Object.entries(difference.changed ?? {});
  const lines = [
    ...(difference.added ?? []).map((name) => ["added", name, ""]),
    ...changed.map(([name, keys]) => ["changed", name, [keys].flat().join(", ")]),
    ...(difference.removed ?? []).map((name) => ["removed", name, ""]),
  ];
  if (!lines.length) return null;
  return h("ul", { class: "changes" }, lines.map(([what, name, keys]) => h("li", { class: what }, h("span", { class: "sign", "aria-label": what }, SIGNS[what]), h("strong", null, name), keys && h("span", { class: "muted" }, keys))));
}

/** How many nodes a difference touches. */
export function touched(difference) {
  if (!difference) return 0;
  if (typeof difference === "string") return difference.split("\n").filter(Boolean).length;
  const { added = [], changed = {}, removed = [] } = difference;
  return added.length + Object.keys(changed).length + removed.length;
}
