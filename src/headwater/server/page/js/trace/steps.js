// How a result was computed: the flow runs again over its records alone, and every step's rows are shown, from the result
// back to the sources.

import { h, s } from "../dom.js";
import { post } from "../api.js";
import { count, many } from "../format.js";
import { table } from "../parts/table.js";
import { asking, cellOf, columns, cut, visible } from "./shown.js";

const FEW = 40;

/** The card with its button; `again` runs it at once. */
export function stepwise({ sink, id, again, started, signal }) {
  const place = h("div", { class: "replayed" });
  const button = h("button", { class: "button primary", type: "button" }, "Compute it again, step by step");
  const card = h("section", { class: "card" },
    h("div", { class: "card-head" }, h("h2", null, "Step by step"), h("span", { class: "end" }, button)),
    h("p", { class: "muted" }, "The flow runs once more over its records alone: what comes out is compared with what was delivered, and the rows of each step are shown. It takes some seconds."),
    place);

  const run = asking({
    button, place, started, signal, words: "Computing it again…",
    ask: async (ending) => {
      const told = await post("/replay", { sink, result_id: id, steps: true }, { signal: ending });
      return [verdict(told), told.steps?.length ? layers(whole(told, sink)) : null];
    },
  });
  if (again) run();
  return card;
}

/** Whether the same came out. */
function verdict(told) {
  const from = `Computed again from its ${many(told.sources.rows.length, "record")} alone`;
  if (told.matches) return h("p", { class: "note good", role: "status" }, h("span", { class: "dot good" }), `${from}: it matches what was delivered.`);
  if (told.row === null) return h("p", { class: "note bad", role: "status" }, h("span", { class: "dot bad" }), `${from}: nothing came out.`);
  const rows = Object.entries(told.differences ?? {}).map(([column, { stored, replayed }]) => ({ column, stored, replayed }));
  return h("div", { class: "verdict" },
    h("p", { class: "note bad", role: "status" }, h("span", { class: "dot bad" }), `${from}: it differs in ${many(rows.length, "column")}.`),
    table({ caption: "Differences", columns: [["column", "column"], ["stored", "delivered"], ["replayed", "computed again"]].map(([name, label]) => ({ name, label, show: (one) => cellOf(one) ?? "null" })), rows }));
}

/** The steps with the result itself at their end, each with its rows and what it was made from. */
function whole(told, sink) {
  const name = sink.split("/").at(-1);
  const last = { step: name, kind: "result", describe: "what was delivered", columns: typed(told), rows: [told.stored], inputs: [told.steps.at(-1).step] };
  const all = told.steps.some((one) => one.kind === "sink") ? told.steps : [...told.steps, last];
  return all.map((one) => {
    const { columns: given, rows } = Array.isArray(one.rows) ? one : one.rows;
    return { ...one, columns: given, rows, total: one.count ?? rows.length };
  });
}

/** The result's columns; what type they have is known of the step before it. */
function typed(told) {
  const before = told.steps.at(-1);
  const types = new Map((before.columns ?? before.rows.columns ?? []).map((one) => [one.name, one.type]));
  return Object.keys(told.stored).map((name) => ({ name, type: types.get(name) }));
}

/** How far each step is from the result: the longest way. */
export function depths(steps) {
  // Without a word of what was made from what: the order in which they came, inputs first.
  if (!steps.slice(0, -1).every((one) => one.inputs)) return new Map(steps.map((one, at) => [one.step, steps.length - 1 - at]));
  const byName = new Map(steps.map((one) => [one.step, one]));
  const used = new Set(steps.flatMap((one) => one.inputs ?? []));
  const depth = new Map();
  const walk = (name, far, above) => {
    if (above.has(name) || (depth.get(name) ?? -1) >= far) return;
    depth.set(name, far);
    for (const input of byName.get(name)?.inputs ?? []) if (byName.has(input)) walk(input, far + 1, new Set([...above, name]));
  };
  for (const one of steps) if (!used.has(one.step)) walk(one.step, 0, new Set());
  return depth;
}

function layers(steps) {
  const depth = depths(steps);
  const ordered = [...steps].reverse().sort((a, b) => depth.get(a.step) - depth.get(b.step));
  const total = steps.reduce((sum, one) => sum + one.rows.length, 0);
  const made = new Map(ordered.map((one) => [one.step, layer(one, depth.get(one.step), total <= FEW || depth.get(one.step) < 2)]));
  const all = (open) => { for (const one of made.values()) one.open = open; };
  const show = (name) => {
    const one = made.get(name);
    one.open = true;
    one.scrollIntoView({ block: "nearest" });
    one.querySelector("summary").focus({ preventScroll: true });
  };
  return [
    h("div", { class: "card-head" }, h("h3", null, `${many(steps.length, "step")}, from the result back to its sources`),
      h("span", { class: "end" },
        h("button", { class: "button small", type: "button", onclick: () => all(true) }, "Expand all"),
        h("button", { class: "button small", type: "button", onclick: () => all(false) }, "Collapse all"))),
    steps.slice(0, -1).every((one) => one.inputs) ? picture(steps, depth, show) : null,
    h("div", { class: "layers" }, [...made.values()]),
  ];
}

function layer(one, depth, open) {
  const kind = ["source", "static"].includes(one.kind) ? "source" : depth === 0 ? "result" : "step";
  const shown = one.rows.length ? table({ caption: `Rows of ${one.step}`, columns: columns(one.columns), rows: one.rows, note: one.total > one.rows.length ? `The first ${count(one.rows.length)} of ${count(one.total)} rows are shown.` : null })
    : h("p", { class: "muted" }, "No rows.");
  return h("details", { class: `layer ${kind}`, open, dataset: { step: one.step } },
    h("summary", null, h("span", { class: "badge" }, visible(one.kind)), h("strong", null, visible(one.step)),
      h("span", { class: "muted number" }, many(one.total, "row")),
      one.describe && h("code", { class: "describe" }, visible(one.describe))),
    h("div", { class: "inside" }, shown,
      one.inputs?.length > 0 && h("p", { class: "muted from" }, "made from the rows of ", one.inputs.map((name, at) => [at > 0 && ", ", h("code", null, visible(name))]))));
}

/** The steps as a graph, sources left, the result right. */
function picture(steps, depth, show) {
  const [wide, high, gapX, gapY] = [132, 42, 34, 12];
  const deepest = Math.max(...depth.values());
  const columnsOf = new Map();
  for (const one of steps) columnsOf.set(depth.get(one.step), [...(columnsOf.get(depth.get(one.step)) ?? []), one]);
  const most = Math.max(...[...columnsOf.values()].map((list) => list.length));
  const [width, height] = [(deepest + 1) * (wide + gapX) - gapX + 4, most * (high + gapY) - gapY + 4];
  const at = new Map();
  for (const [far, list] of columnsOf) list.forEach((one, row) => {
    at.set(one.step, [2 + (deepest - far) * (wide + gapX), 2 + (row + (most - list.length) / 2) * (high + gapY)]);
  });
  const edges = steps.flatMap((one) => (one.inputs ?? []).filter((name) => at.has(name)).map((name) => {
    const [[x, y], [toX, toY]] = [at.get(name), at.get(one.step)];
    const [from, to] = [x + wide, toX];
    return s("path", { class: "edge", d: `M${from} ${y + high / 2}C${(from + to) / 2} ${y + high / 2} ${(from + to) / 2} ${toY + high / 2} ${to} ${toY + high / 2}` });
  }));
  const nodes = steps.map((one) => {
    const [x, y] = at.get(one.step);
    const kind = ["source", "static"].includes(one.kind) ? "source" : depth.get(one.step) === 0 ? "result" : "step";
    return s("g", {
      class: `vertex opens ${kind}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "aria-label": `${one.kind} ${one.step}: ${many(one.total, "row")}`,
      onclick: () => show(one.step),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(one.step); } },
    },
    s("title", null, `${one.step}: ${one.describe ?? ""}`), s("rect", { width: wide, height: high, rx: kind === "source" ? high / 2 : 5 }),
    s("text", { class: "name", x: wide / 2, y: 18, "text-anchor": "middle" }, cut(one.step, 17)),
    s("text", { class: "note", x: wide / 2, y: 33, "text-anchor": "middle" }, many(one.total, "row")));
  });
  return h("div", { class: "picture", role: "region", tabindex: 0, "aria-label": "The steps as a graph" }, s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group" }, edges, nodes));
}
