// Fields of a form, one for each type of value. A field tells its value as a flow file has it; undefined is no value.

import { h } from "../dom.js";
import { alertEditor, columnsEditor, inputsEditor, windowEditor } from "./structured.js";

const LINES = new Set(["sql", "schema", "properties", "steps"]);
let numbered = 0;

/** A field: `field({key, value, change(value), context})`; its element has `errors(list)`. `key` is one of a kind's keys. */
export function field({ key, value, change, context }) {
  const id = `field-${(numbered += 1)}`;
  const help = h("small", { id: `${id}-help` }, key.doc);
  const wrong = h("small", { class: "error", role: "alert", hidden: true });
  const given = { id, key, value, change, context, help: `${id}-help` };
  const editor = EDITORS[key.type]?.(given) ?? text(given);
  const name = h(editor.grouped ? "span" : "label", { class: "key-name", for: editor.grouped ? null : id, id: `${id}-name` }, key.key, key.required && h("span", { class: "needed", title: "needed" }, " *"));
  const element = h("div", { class: `key-field type-${key.type}`, role: editor.grouped ? "group" : null, "aria-labelledby": editor.grouped ? `${id}-name` : null, dataset: { key: key.key } },
    editor.inline ? h("div", { class: "key-line" }, editor.element, name) : [name, editor.element], wrong, help);
  element.errors = (list) => {
    const said = list.join("\n");
    wrong.hidden = !said;
    if (wrong.textContent !== said) wrong.textContent = said;
    const control = editor.grouped ? null : editor.element.matches("input, textarea, select") ? editor.element : editor.element.querySelector("input");
    control?.setAttribute("aria-invalid", said ? "true" : "false");
    element.classList.toggle("invalid", Boolean(said));
  };
  return element;
}

// --- one line, or several ---------------------------------------------------------------------

/** What a value looks like in a field. */
export function shown(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** What is meant by a text: a number, true, false, something of JSON, or the text. */
export function meant(said) {
  const trimmed = said.trim();
  if (!trimmed) return undefined;
  if (/^(-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null|[[{].*[\]}]|".*")$/s.test(trimmed)) {
    try {
      return JSON.parse(trimmed);
    } catch {
      return said;
    }
  }
  return said;
}

const plain = (said) => (said.trim() ? said : undefined);
const number = (said) => (/^\s*-?\d+(\.\d+)?\s*$/.test(said) ? Number(said) : plain(said));

function text({ id, key, value, change, context, help }) {
  const [write, read] = TEXTS[key.type] ?? [shown, plain];
  const suggested = key.key === "stream" && context?.streams?.length ? context.streams : null;
  const several = LINES.has(key.type);
  const control = h(several ? "textarea" : "input", {
    id, "aria-describedby": help, autocomplete: "off", autocapitalize: "off", spellcheck: "false", list: suggested && `${id}-list`,
    class: key.type === "sql" || key.type === "schema" || key.type === "function" ? "mono" : null, rows: several ? 2 : null,
    inputmode: key.type === "integer" || key.type === "number" ? "decimal" : null,
    placeholder: key.default !== undefined ? String(key.default) : key.placeholder ?? PLACEHOLDERS[key.type] ?? null,
  });
  control.value = write(value);
  control.dataset.sql = key.type === "sql" ? "yes" : "";
  control.addEventListener("input", () => {
    grow(control);
    change(read(control.value));
  });
  if (several) requestAnimationFrame(() => grow(control));
  if (!suggested) return { element: control };
  const list = h("datalist", { id: `${id}-list` }, suggested.map((name) => h("option", { value: name })));
  return { element: h("div", null, control, list) };
}

export function grow(control) {
  if (control.tagName !== "TEXTAREA") return;
  control.style.setProperty("height", "auto");
  control.style.setProperty("height", `${Math.min(control.scrollHeight + 2, 320)}px`);
}

const PLACEHOLDERS = { duration: "10 seconds", cardinality: "1, 1/3, <1 or unknown", function: "module:function", target: "https://… or module:function", url: "https://…", names: "one, or several with commas between", schema: "id bigint, at timestamp", properties: "name := path : TYPE" };

const listed = (said) => {
  const parts = said.split(",").map((part) => part.trim()).filter(Boolean);
  return parts.length > 1 ? parts : parts[0];
};

/** How a value becomes text and a text a value, where that is not as it stands. */
const TEXTS = {
  integer: [shown, number],
  number: [shown, number],
  cardinality: [shown, number],
  duration: [shown, number],
  any: [shown, meant],
  steps: [(value) => (value === undefined ? "" : JSON.stringify(value, null, 1)), meant],
  names: [(value) => [value ?? []].flat().join(", "), listed],
  either: [(value) => (Array.isArray(value) ? value.join(", ") : shown(value)), (said) => (/^\s*[[{]/.test(said) ? meant(said) : said.includes(",") ? listed(said) : meant(said))],
  properties: [(value) => (Array.isArray(value) ? value.join("\n") : shown(value)), (said) => {
    const lines = said.split("\n").map((line) => line.trim()).filter(Boolean);
    return lines.length ? lines : undefined;
  }],
};

// --- choices and parts ------------------------------------------------------------------------

function choice({ id, key, value, change, help }) {
  const usual = key.default !== undefined ? `${key.default} (as usual)` : key.required ? "choose one" : "none";
  const others = key.choices.filter((one) => one !== key.default);
  const control = h("select", { id, "aria-describedby": help, onchange: () => change(control.value || undefined) },
    h("option", { value: "" }, usual), others.map((one) => h("option", { value: one }, one)),
    value !== undefined && !key.choices.includes(value) && h("option", { value: String(value) }, shown(value)));
  control.value = value === undefined || value === key.default ? "" : String(value);
  return { element: control };
}

function flag({ id, value, change, help }) {
  const control = h("input", { type: "checkbox", id, "aria-describedby": help, checked: value === true, onchange: () => change(control.checked ? true : undefined) });
  return { element: control, inline: true };
}

const EDITORS = {
  choice,
  boolean: flag,
  inputs: (given) => inputsEditor(given),
  window: (given) => windowEditor(given),
  alert: (given) => alertEditor(given),
  pairs: (given) => columnsEditor({ ...given, shown, meant: given.key.of === "sql" ? plain : meant, grow }),
};
