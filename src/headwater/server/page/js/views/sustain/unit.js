// A unit's queue over the last minutes, with the lines of what is expected and of the limit.

import { h, fill } from "../../dom.js";
import { count, number, percent, seconds } from "../../format.js";
import { lineChart } from "../../parts/chart.js";
import { stateBadge, verdictBadge } from "../../parts/health.js";

/** A card of a unit: `{element, update(unit, history), end()}`. */
export function unitCard() {
  const name = h("h3");
  const about = h("span", { class: "muted" });
  const badges = h("span", { class: "badges" });
  const reason = h("p", { class: "reason" });
  const chart = lineChart({ label: "Queue length", unit: " events in transit" });
  const legend = h("p", { class: "legend" });
  const element = h("section", { class: "card unit" }, h("div", { class: "card-head" }, name, about, h("span", { class: "end" }, badges)), reason, chart.element, legend);

  function update(unit, history) {
    element.setAttribute("aria-label", `Unit ${unit.name}`);
    name.textContent = unit.name;
    const others = unit.nodes.filter((node) => node !== unit.name);
    about.textContent = [unit.runtime, others.length ? `with ${others.slice(0, 4).join(", ")}${others.length > 4 ? " …" : ""}` : null].filter(Boolean).join(" · ");
    fill(badges, unit.state === "running" ? null : stateBadge(unit.state), verdictBadge(unit.verdict));
    reason.textContent = told(unit);
    const levels = [
      known(unit.expected) && { value: unit.expected, name: "expected", kind: "expected" },
      known(unit.limit) && { value: unit.limit, name: "limit", kind: "limit", holds: false },
    ].filter(Boolean);
    const values = history.nodes?.[unit.nodes[0]] ?? history.nodes?.[unit.name] ?? [];
    chart.update({ values, every: history.every ?? 1, start: begin(history.start), levels });
    fill(legend, key("measured", `measured ${count(unit.in_transit ?? 0)}`), known(unit.expected) && key("expected", `expected ${number(unit.expected)}`), known(unit.limit) && key("limit", `limit ${number(unit.limit)}`),
      h("span", { class: "muted" }, [unit.service && `${seconds(unit.service)} an event`, unit.efficiency && `${percent(unit.efficiency)} of the time is its own work`].filter(Boolean).join(" · ")));
  }

  return { element, update, end: chart.end };
}

const known = (value) => value !== null && value !== undefined;
const key = (kind, text) => h("span", { class: `key ${kind}` }, text);
const begin = (start) => (typeof start === "string" ? new Date(start) / 1000 : start ?? 0);

function told(unit) {
  if (unit.error) return unit.error;
  const reason = unit.reason ? `${unit.reason[0].toUpperCase()}${unit.reason.slice(1)}.` : "";
  return known(unit.exhaustion) ? `${reason} Full in ${seconds(unit.exhaustion)}.`.trim() : reason;
}
