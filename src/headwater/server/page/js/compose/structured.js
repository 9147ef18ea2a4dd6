// Fields with parts: what a node reads, columns with expressions, windows, alerts.

import { fill, h } from "../dom.js";
import { icon } from "../parts/icons.js";
import { fromOf, inputsOf, usual } from "./model.js";

const parted = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
const number = (said) => (/^\s*\d+(\.\d+)?\s*$/.test(said) ? Number(said) : said.trim() || undefined);
const remover = (name, go) => h("button", { class: "button quiet icon small", type: "button", title: `Remove ${name}`, "aria-label": `Remove ${name}`, onclick: go }, icon("close", 12));
const adder = (text, go) => h("button", { class: "button small", type: "button", onclick: go }, icon("plus", 12), text);

/** What a node reads: a row for each port, with its name where it can have one. `context.targets` are those there are. */
export function inputsEditor({ key, value, change, context }) {
  const many = context.kind.most !== 1;
  // A port's name means something beside others, and as the table of a query.
  const named = () => many && (rows.length > 1 || context.kind.kind === "sql" || rows.some((row) => row.target && row.port !== usual(row.target)));
  let rows = inputsOf({ from: value });
  const list = h("div", { class: "rows" });
  const tell = () => change(fromOf(rows));

  function draw(focus) {
    const targets = context.targets();
    fill(list, rows.map((row, at) => {
      const known = targets.includes(row.target) || !row.target ? targets : [row.target, ...targets];
      const pick = h("select", { "aria-label": many ? `Input ${at + 1}` : "Input", onchange: () => set(at, pick.value) },
        h("option", { value: "" }, "choose a node"), known.map((one) => h("option", { value: one }, targets.includes(one) ? one : `${one} (gone)`)));
      pick.value = row.target;
      const port = h("input", { "aria-label": `Name of port ${at + 1}`, title: "The port's name: the table of an sql, the parameter of a function", value: row.port, spellcheck: "false", autocapitalize: "off", oninput: () => name(at, port.value) });
      return h("div", { class: `row${named() ? " three" : ""}` }, named() && port, pick, (many || !context.kind.least) && remover(row.target || "this input", () => drop(at)));
    }), rows.length < (context.kind.most ?? Infinity) && adder(rows.length ? "One more input" : "Choose an input", () => add()));
    if (focus !== undefined) list.querySelectorAll("select")[focus]?.focus();
  }

  function set(at, target) {
    const old = rows[at];
    rows[at] = { target, port: !old.port || old.port === usual(old.target) ? usual(target) : old.port };
    draw(at);
    tell();
  }

  function name(at, port) {
    rows[at].port = port.trim() || usual(rows[at].target);
    tell();
  }

  function drop(at) {
    rows.splice(at, 1);
    draw();
    tell();
  }

  function add() {
    rows.push({ port: "", target: "" });
    draw(rows.length - 1);
  }

  if (!rows.length && key.required) rows = [{ port: "", target: "" }];
  draw();
  return { element: list, grouped: true };
}

/** Names with a value each: columns with their expressions. */
export function columnsEditor({ key, value, change, shown, meant, grow }) {
  const rows = Object.entries(parted(value)).map(([name, told]) => ({ name, said: shown(told) }));
  const list = h("div", { class: "rows" });
  const sql = key.of === "sql";

  function tell() {
    const told = rows.filter((row) => row.name.trim()).map((row) => [row.name.trim(), meant(row.said) ?? ""]);
    change(told.length ? Object.fromEntries(told) : undefined);
  }

  function draw(focus) {
    fill(list, rows.map((row, at) => {
      const name = h("input", { "aria-label": `Name ${at + 1}`, placeholder: "name", value: row.name, spellcheck: "false", autocapitalize: "off", oninput: () => { row.name = name.value; tell(); } });
      const said = h(sql ? "textarea" : "input", { "aria-label": `Value of ${row.name || at + 1}`, placeholder: sql ? "expression" : "value", class: "mono", rows: sql ? 1 : null, spellcheck: "false", autocapitalize: "off", dataset: { sql: sql ? "yes" : "" }, oninput: () => { row.said = said.value; grow(said); tell(); } });
      said.value = row.said;
      if (sql) requestAnimationFrame(() => grow(said));
      return h("div", { class: "row three" }, name, said, remover(row.name || "this line", () => { rows.splice(at, 1); draw(); tell(); }));
    }), adder(sql ? "Add a column" : "Add a value", () => { rows.push({ name: "", said: "" }); draw(rows.length - 1); }));
    if (focus !== undefined) list.children[focus]?.querySelector("input")?.focus();
  }

  if (!rows.length && key.required) rows.push({ name: "", said: "" });
  draw();
  return { element: list, grouped: true };
}

const SIZES = { count: ["events", "10"], time: ["long", "10 minutes"], value: ["wide", "5"], session: ["gap", "5 minutes"] };

/** A window: what it is measured in, its size, how far it slides. */
export function windowEditor({ key, value, change }) {
  const measures = key.choices;
  const told = parted(value);
  let measure = measures.find((one) => told[one] !== undefined) ?? measures[0];
  const parts = { size: told[measure], slide: told.slide, on: told.on };
  const box = h("div", { class: "rows" });

  function tell() {
    if (parts.size === undefined) return change(undefined);
    const made = { [measure]: parts.size };
    if (parts.slide !== undefined && measure !== "session") made.slide = parts.slide;
    if (parts.on !== undefined && measure !== "count") made.on = parts.on;
    return change(made);
  }

  function part(name, label, placeholder, read) {
    const control = h("input", { value: parts[name] ?? "", placeholder, spellcheck: "false", autocapitalize: "off", oninput: () => { parts[name] = read(control.value); tell(); } });
    return h("label", { class: "field" }, h("span", null, label), control);
  }

  function draw() {
    const pick = h("select", { onchange: () => { measure = pick.value; parts.size = undefined; parts.slide = undefined; draw(); tell(); } }, measures.map((one) => h("option", { value: one }, one)));
    pick.value = measure;
    const [label, example] = SIZES[measure];
    fill(box, h("div", { class: "parts" },
      h("label", { class: "field" }, h("span", null, "measured in"), pick),
      part("size", label, example, number),
      key.slides && measure !== "session" && part("slide", "slides by", measure === "value" ? "needed" : "itself", number),
      key.slides && measure !== "count" && part("on", "on column", measure === "value" ? "needed" : "event time", (said) => said.trim() || undefined)));
  }

  draw();
  return { element: box, grouped: true };
}

/** Who is told: nobody, a webhook or mail addresses. */
export function alertEditor({ value, change }) {
  const told = parted(value);
  let way = "webhook" in told ? "webhook" : "email" in told ? "email" : "";
  const parts = { webhook: told.webhook ?? "", email: [told.email ?? []].flat().join(", "), subject: told.subject ?? "" };
  const box = h("div", { class: "rows" });

  function tell() {
    if (!way) return change(undefined);
    if (way === "webhook") return change({ webhook: parts.webhook });
    const addresses = parts.email.split(",").map((one) => one.trim()).filter(Boolean);
    const email = addresses.length > 1 ? addresses : addresses[0] ?? "";
    return change(parts.subject ? { email, subject: parts.subject } : { email });
  }

  function part(name, label, placeholder) {
    const control = h("input", { value: parts[name], placeholder, spellcheck: "false", autocapitalize: "off", oninput: () => { parts[name] = control.value; tell(); } });
    return h("label", { class: "field" }, h("span", null, label), control);
  }

  function draw() {
    const pick = h("select", { "aria-label": "Who is told", onchange: () => { way = pick.value; draw(); tell(); } },
      [["", "nobody"], ["webhook", "a webhook"], ["email", "mail addresses"]].map(([one, words]) => h("option", { value: one }, words)));
    pick.value = way;
    fill(box, pick, way === "webhook" && part("webhook", "URL", "https://…"), way === "email" && [part("email", "addresses", "ops@example.org"), part("subject", "subject", "")]);
  }

  draw();
  return { element: box, grouped: true };
}
