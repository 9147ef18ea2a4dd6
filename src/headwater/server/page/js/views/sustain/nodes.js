// The nodes of a flow, those in trouble first: measured and expected lengths, the verdict, and why.

import { h, s } from "../../dom.js";
import { count, number, percent, rate, seconds } from "../../format.js";
import { trouble, verdictBadge } from "../../parts/health.js";
import { table } from "../../parts/table.js";

/** A table of nodes: `{element, update(rows)}`. */
export function nodesTable(flow) {
  const made = table({
    caption: `Queues of ${flow}`, key: (row) => row.node,
    columns: [
      { name: "node", label: "Node", show: (node, row) => h("span", { class: "named" }, h("strong", null, node), h("span", { class: "muted" }, row.kind)) },
      { name: "verdict", label: "Verdict", show: verdictBadge },
      { name: "in_transit", label: "Measured", type: "bigint", show: (length) => h("strong", null, count(length ?? 0)) },
      { name: "expected", label: "Expected", type: "double", show: (given) => (given === null || given === undefined ? "" : number(given)) },
      { name: "forecast", label: "M/M/c", type: "double", show: forecast },
      { name: "bar", label: "Measured against expected", show: (given, row) => bar(row) },
      { name: "exhaustion", label: "Full in", type: "double", show: (given) => (given === null || given === undefined ? "" : h("strong", { class: "error-text" }, seconds(given))) },
      { name: "rate_in", label: "In", type: "double", show: (given) => rate(given) },
      { name: "service", label: "Service", type: "double", show: (given) => seconds(given) },
      { name: "utilisation", label: "Busy", type: "double", show: (given, row) => bound(row, percent(row.forecast?.utilisation)) },
      { name: "reason", label: "Because", class: "because", show: because },
    ],
  });
  const sorted = (rows) => rows.slice().sort((a, b) => trouble(a.verdict) - trouble(b.verdict) || (a.exhaustion ?? Infinity) - (b.exhaustion ?? Infinity) || (b.in_transit ?? 0) - (a.in_transit ?? 0));
  return { element: made, update: (rows) => made.rows(sorted(rows)) };
}

function because(reason, row) {
  const told = [reason, row.slope > 0 && row.verdict === "growing" ? `that is ${number(60 * row.slope)} more each minute` : null].filter(Boolean).join("; ");
  return told || (row.unit ? "nothing is known of it yet" : "it runs once, and has no queue");
}

// Behind a filter whose share is not known, numbers are bounds.
const bound = (row, text) => (text && row.forecast && !row.forecast.exact ? `≤ ${text}` : text);

function forecast(told, row) {
  if (!told) return "";
  if (told.in_transit === null || told.in_transit === undefined) return told.utilisation >= 1 ? "without end" : "";
  return bound(row, number(told.in_transit));
}

const WIDTH = 120;

/** A bar of the length that is measured, with a stroke at what is expected and another at the limit. */
function bar(row) {
  const length = row.in_transit ?? 0;
  const expected = row.expected;
  const most = Math.max(length, expected ?? 0, row.limit ?? 0, 1) * 1.05;
  const x = (value) => ((value / most) * WIDTH).toFixed(1);
  const told = `${count(length)} measured, ${expected === null || expected === undefined ? "nothing" : number(expected)} expected${row.limit ? `, limit ${number(row.limit)}` : ""}`;
  return s("svg", { class: `bar ${row.verdict ?? "none"}`, viewBox: `0 0 ${WIDTH} 16`, width: WIDTH, height: 16, role: "img", "aria-label": told },
    s("title", null, told),
    s("rect", { class: "track", x: 0, y: 4, width: WIDTH, height: 8, rx: 2 }),
    s("rect", { class: "fill", x: 0, y: 4, width: x(length), height: 8, rx: 2 }),
    row.limit ? s("line", { class: "limit", x1: x(row.limit), x2: x(row.limit), y1: 2, y2: 14 }) : null,
    expected === null || expected === undefined ? null : s("line", { class: "expected", x1: x(expected), x2: x(expected), y1: 0, y2: 16 }));
}
