// A node more: its name, what it reads and what it can't do without, asked for in a dialog.

import { h } from "../dom.js";
import { open } from "../parts/dialog.js";
import { field } from "./fields.js";
import { targets } from "./inspector.js";
import { has, freshName, isName, kindOf, usual } from "./model.js";

// Of keys that exclude each other, the one that most nodes have.
const USUAL = { source: ["stream"], sink: ["stream"], static: ["value"], join: ["policy", "within"], job: ["run"] };

/** Ask for a node of a kind: a promise of {name, keys}, or null. `selected` is what it reads if nothing else is chosen. */
export async function askNode({ kind, document, kinds, streams, selected }) {
  const told = kinds.get(kind);
  const [suggested] = Object.keys(told.example ?? {});
  const example = Object.values(Object.values(told.example ?? {})[0] ?? {})[0] ?? {};
  const asked = told.keys.filter((key) => key.key !== "from" && (key.required || (USUAL[kind] ?? []).includes(key.key)));
  const there = targets("", document, kinds);
  const first = selected && there.includes(selected) ? selected : there.length === 1 ? there[0] : undefined;
  const keys = {};
  if (told.inputs !== "none" && told.least > 0 && first) keys.from = first;
  if (kind === "join") keys.policy = "window";
  if (kind === "sql" && first) keys.query = `select * from ${usual(first)}`;

  const name = h("input", { required: true, value: freshName(document, suggested ?? kind), spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  const wrong = h("small", { class: "error", role: "alert", hidden: true });
  const change = (key) => (value) => {
    if (value === undefined) delete keys[key];
    else keys[key] = value;
  };
  const context = { kind: told, streams, targets: () => there };
  const from = told.keys.find((key) => key.key === "from");
  const fields = [...(told.least > 0 && from ? [from] : []), ...asked].map((key) => {
    const shown = key.placeholder || typeof example[key.key] !== "string" ? key : { ...key, placeholder: example[key.key] };
    return field({ key: { ...shown, required: key.required && key.key !== "from" }, value: keys[key.key], change: change(key.key), context });
  });

  return open({
    title: `Add: ${kind}`,
    action: "Add",
    body: h("div", { class: "add-node" },
      h("p", { class: "muted" }, told.doc),
      h("label", { class: "field" }, h("span", null, "Name"), name, wrong),
      fields,
      !there.length && told.least > 0 && h("p", { class: "note" }, "There is nothing to read yet: add a source as well, and connect it then.")),
    answer: () => {
      const chosen = name.value.trim();
      const taken = has(document, chosen);
      wrong.hidden = isName(chosen) && !taken;
      wrong.textContent = taken ? `There is a ${kindOf(document, chosen)} of this name already.` : "A name is a letter, then letters, digits, _ and -.";
      return isName(chosen) && !taken ? { name: chosen, keys: { ...keys } } : null;
    },
  });
}
