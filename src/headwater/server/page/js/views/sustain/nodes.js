// The nodes of a flow, those in trouble first: measured and expected lengths, the verdict, and why.

import { h, s } from "../../dom.js";
import { count, number, percent, rate, seconds } from "../../format.js";
import { trouble, verdictBadge } from "../../parts/health.js";
import { table } from "../../parts/table.js";

/** A table of nodes: `{element, update(rows)}`; rows as `ranked` gives them. */
export function nodesTable(flow) {
  // Events wait before a unit, not between its nodes: what is said of the queue is said once.
  const own = (show) => (given, row) => (row.with ? h("span") : show(given, row));
  const made = table({
    caption: `Queues of ${flow}`, key: (row) => row.node,
    columns: [
      { name: "node", label: "Node", show: (node, row) => h("span", { class: row.with ? "named inner" : "named" }, h("strong", null, node), h("span", { class: "muted" }, row.kind)) },
      { name: "verdict", label: "Verdict", show: (verdict, row) => (row.with ? h("span", { class: "muted" }, `with ${row.with}`) : verdictBadge(verdict)) },
      { name: "in_transit", label: "Measured", about: "Events in transit now: waiting, or being worked on", type: "bigint", show: own((length) => h("strong", null, count(length ?? 0))) },
      { name: "expected", label: "Expected", about: "Events in transit by Little’s law: how many come a second, times how long one takes", type: "double", show: own(number) },
      { name: "forecast", label: "M/M/c", about: "Events in transit that queueing theory forecasts from declared rates and times", type: "double", show: forecast },
      { name: "bar", label: "Measured against expected", show: own((given, row) => bar(row)) },
      { name: "exhaustion", label: "Full in", about: "When a queue that grows reaches its limit", type: "double", show: own((given) => (known(given) ? h("strong", { class: "error-text" }, seconds(given)) : "")) },
      { name: "rate_in", label: "In", about: "Events that come in, a second", type: "double", show: (given) => rate(given) },
      { name: "service", label: "Service", about: "How long one event takes", type: "double", show: own(seconds) },
      { name: "utilisation", label: "Busy", about: "The share of time that it works, by the forecast", type: "double", show: (given, row) => bound(row, percent(row.forecast?.utilisation)) || (row.with ? h("span") : "") },
      { name: "reason", label: "Because", class: "because", show: own(because) },
    ],
  });
  function update(rows) {
    made.rows(rows);
    made.foot({ note: rows.some((row) => row.forecast) ? null : ["M/M/c forecasts are made where the flow file declares ", h("code", null, "rate"), " of sources and ", h("code", null, "takes"), " of nodes."] });
  }
  return { element: made, update };
}

const known = (value) => value !== null && value !== undefined;

/** The nodes of a status that have queues or forecasts: units in trouble first, a unit's nodes together. */
export function ranked({ nodes, units }) {
  const first = new Map(units.map((unit) => [unit.id, unit.nodes[0]]));
  const head = (row) => nodes.find((node) => node.node === first.get(row.unit)) ?? row;
  const rank = (row) => {
    const lead = head(row);
    return [trouble(lead.verdict), lead.exhaustion ?? Infinity, -(lead.in_transit ?? 0), lead.node];
  };
  return nodes
    .filter((node) => node.verdict || node.forecast)
    .map((node, at) => ({ row: { ...node, with: head(node).node === node.node ? null : head(node).node }, key: [...rank(node), at] }))
    .sort((a, b) => {
      const place = a.key.findIndex((one, at) => one !== b.key[at]);
      return a.key[place] < b.key[place] ? -1 : 1;
    })
    .map(({ row }) => row);
}

function because(reason, row) {
  const told = [reason, row.slope > 0 && row.verdict === "growing" ? `that is ${number(60 * row.slope)} more each minute` : null].filter(Boolean).join("; ");
  return told || (row.unit ? "nothing is known of it yet" : "it runs once, and has no queue");
}

// Behind a filter whose share is not known, numbers are bounds.
const bound = (row, text) => (text && row.forecast && !row.forecast.exact ? `≤ ${text}` : text);

function forecast(told, row) {
  if (!told) return row.with ? h("span") : "";
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
