// The panel while no node is chosen: what the flow compiles to, and what to do next.

import { fill, h } from "../dom.js";
import { many } from "../format.js";
import { names } from "./model.js";

/** `act` has `node(name)`. */
export function summary(act) {
  const element = h("div", { class: "summary" });
  let last = "";

  function update(state) {
    const told = JSON.stringify([state.plan, names(state.document), state.deployed?.version]);
    if (told === last) return;
    last = told;
    fill(element, h("h2", null, "The flow"), names(state.document).length ? [plan(state), keys()] : first());
  }

  const node = (name) => h("button", { type: "button", class: "link", onclick: () => act.node(name) }, name);
  const list = (nodes) => nodes.flatMap((name, at) => [at ? ", " : null, node(name)]);

  function plan({ plan: made, document }) {
    if (!made) return h("p", { class: "muted" }, `${many(names(document).length, "node")}. What it compiles to is shown when nothing is wrong with it.`);
    const running = made.units.filter((unit) => !unit.idle);
    const stored = made.streams.filter((stream) => stream.stored && !stream.static);
    return [
      h("p", { class: "muted" }, `${many(made.nodes.length, "node")}, ${many(made.subflows.length, "sub-flow")}, ${many(running.length, "unit")} to run.`),
      h("h3", null, "Units, deployed and changed as one"),
      h("ul", { class: "units" }, running.map((unit) => h("li", null, h("span", { class: `runtime ${unit.runtime}` }, unit.runtime), h("span", null, list(unit.nodes))))),
      h("h3", null, "Labels: what carries the same events"),
      h("ul", { class: "units" }, labels(made).map(([label, nodes]) => h("li", null, h("span", { class: "label-name" }, label), h("span", null, list(nodes))))),
      stored.length > 0 && [h("h3", null, "Streams"), h("ul", { class: "units" }, stored.map((stream) => h("li", null, h("span", { class: "mono" }, stream.stream), h("span", { class: "muted" }, stream.to.length ? "between units" : "for others to read"))))],
    ];
  }

  function labels(made) {
    const found = new Map();
    for (const row of made.nodes) found.set(row.label, [...(found.get(row.label) ?? []), row.node]);
    return [...found];
  }

  const keys = () => h("p", { class: "muted small" }, "Choose a node to change it. Drag from the dot at its right to the node that is to read it, or choose inputs in its form. Ctrl+Z undoes, Delete removes.");
  const first = () => h("ol", { class: "steps" },
    h("li", null, "Add a stream as a source, or a source that declares one."),
    h("li", null, "Add what is to be done with its events: a filter, a query, a window."),
    h("li", null, "End with a sink, which publishes a stream."),
    h("li", null, "Deploy. Rates appear on every node and edge."));

  return { element, update };
}
