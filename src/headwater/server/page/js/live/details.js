// What is selected, in words: the vertex, whether it is alive, its neighbours, the way to its trace.

import { h, fill } from "../dom.js";
import { count, many, time } from "../format.js";
import { cut, visible } from "../trace/shown.js";
import { recordLink, resultLink } from "../trace/places.js";
import { neighbours } from "./model.js";

const MOST = 60;
const WORDS = { source: "record", result: "result", step: "row of a step" };

/** Where a vertex is traced; rows of steps have no trace of their own. */
export function traceLink(vertex, flow) {
  const name = `${flow}/${vertex.name}`;
  if (vertex.kind === "source") return recordLink(name, vertex.id);
  return vertex.kind === "result" ? resultLink(name, vertex.id) : null;
}

export function state(vertex) {
  if (vertex.kind === "result") return "delivered";
  return vertex.expired ? "expired: it can reach no more results" : "alive: it may still reach results";
}

/** The panel; `show(vertex | null, flow)`; it tells `selected(key)`. */
export function details({ selected }) {
  const panel = h("aside", { class: "card details", "aria-label": "Selected" });
  const said = h("p", { class: "sr-only", id: "live-selected", "aria-live": "polite" });

  let last = null;

  function nothing() {
    last = null;
    said.textContent = "Nothing is selected.";
    fill(panel, h("h2", null, "Nothing selected"), h("p", { class: "muted" }, "Point at a vertex to see its edges, click or tap it to keep it. With the keyboard: go to the graph, then the arrow keys."), said);
  }

  function show(vertex, flow, kept = true) {
    if (!vertex) return nothing();
    const near = neighbours(vertex).sort((a, b) => (b.time ?? 0) - (a.time ?? 0));
    // Each batch asks for it: what is the same stays, and so do focus and scroll position.
    const same = JSON.stringify([vertex.key, vertex.id, vertex.expired, vertex.marked, kept, near.length, near.slice(0, MOST).map((one) => [one.key, one.expired, one.marked])]);
    if (same === last) return;
    last = same;
    const held = panel.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const link = traceLink(vertex, flow);
    const words = `${WORDS[vertex.kind]} of ${cut(vertex.name, 60)}`;
    const told = `${words}, ${visible(vertex.id)}, ${state(vertex)}, ${vertex.marked ? "marked, " : ""}${many(near.length, "neighbour")}`;
    if (said.textContent !== told) said.textContent = told;
    fill(panel,
      h("div", { class: "card-head" }, h("h2", null, h("span", { class: `mark ${vertex.kind}${vertex.expired && vertex.kind !== "result" ? " expired" : ""}${vertex.marked ? " marked" : ""}`, "aria-hidden": "true" }), words)),
      h("p", { class: "mono id" }, h("bdi", null, cut(vertex.id, 200))),
      h("dl", { class: "facts" },
        h("dt", null, "event time"), h("dd", null, vertex.event_time ? h("time", { title: vertex.event_time }, time(vertex.event_time)) : "none"),
        vertex.delivered && [h("dt", null, "at watermark"), h("dd", null, h("time", { title: vertex.delivered }, time(vertex.delivered)))],
        h("dt", null, "batch"), h("dd", { class: "number" }, count(vertex.batch)),
        h("dt", null, "state"), h("dd", null, state(vertex)),
        vertex.marked && [h("dt", null, "marked"), h("dd", null, h("span", { class: "badge bad" }, vertex.kind === "source" ? "◆ marked record" : "◆ holds a marked record"))]),
      link && h("a", { class: "button", href: link }, vertex.kind === "result" ? "Trace it to its records" : "Trace it to its results"),
      !kept && h("p", { class: "note" }, h("span", { class: "dot none" }), "It is not among the vertices shown."),
      kept && [h("h3", null, vertex.kind === "result" ? "Records behind it" : vertex.kind === "step" ? "Its neighbours" : "Results it reached", " ", h("span", { class: "muted number" }, near.length > MOST ? `${MOST} of ${count(near.length)} shown` : count(near.length))),
        near.length ? h("ul", { class: "neighbours" }, near.slice(0, MOST).map((one) => h("li", null,
          h("button", { class: "button quiet small", type: "button", dataset: { key: one.key }, onclick: () => selected(one.key) },
            h("span", { class: `mark ${one.kind}${one.expired && one.kind !== "result" ? " expired" : ""}${one.marked ? " marked" : ""}`, "aria-hidden": "true" }),
            h("bdi", { title: time(one.event_time) }, h("span", { class: "muted" }, cut(one.name, 24)), ` ${cut(one.id, 24)}`), one.marked && h("span", { class: "sr-only" }, "marked")))))
          : h("p", { class: "muted" }, "None among the vertices shown.")],
      said);
    if (held) [...panel.querySelectorAll("[data-key]")].find((one) => one.dataset.key === held)?.focus();
  }
  nothing();
  return { panel, show };
}
