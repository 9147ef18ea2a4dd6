// What is wrong with a flow, and joins that are missing, each with the choices that would mend it.

import { fill, h } from "../dom.js";
import { many } from "../format.js";
import { dot, note } from "../parts/health.js";

const MEANING = {
  "latest-of-slower": "The slower stream's last event, again for each event of the faster one",
  "drop-to-slower": "The faster stream's last event at each event of the slower one; the others are dropped",
  window: "Pairs of events that are close in time",
};

/** `act` has `node(name)`, `line(number)`, `join(missing, policy)`. */
export function problems(act) {
  const element = h("section", { class: "problems", "aria-label": "What is wrong", "aria-live": "polite" });
  let last = "";

  function update(state) {
    const joins = state.plan?.joins ?? [];
    const rest = state.violations.filter((one) => !(one.rule === "join-required" && joins.some((join) => join.node === one.node)));
    const told = JSON.stringify([rest, joins, state.trouble, state.readable]);
    if (told === last) return;
    last = told;
    element.hidden = !rest.length && !joins.length && !state.trouble;
    fill(element,
      state.trouble && note("bad", state.trouble),
      !state.readable && note("warn", "The text can't be read as it is; the drawing is of the last text that could."),
      joins.map(missing),
      rest.length > 0 && h("h3", null, rest.every((one) => one.soft) ? "Still to do" : many(rest.length, "problem")),
      rest.length > 0 && h("ul", null, rest.map(one)));
  }

  function one(violation) {
    const where = [violation.node && h("button", { type: "button", class: "link", onclick: () => act.node(violation.node) }, violation.node),
      violation.line && h("button", { type: "button", class: "link", onclick: () => act.line(violation.line) }, `line ${violation.line}`)];
    return h("li", null, dot(violation.soft ? "warn" : "bad"), h("span", null, where.filter(Boolean).flatMap((part, at) => [at ? ", " : "", part]), where.some(Boolean) && ": ", violation.text, " ", h("span", { class: "rule" }, violation.rule)));
  }

  function missing(join) {
    const ports = Object.entries(join.ports).map(([port, label]) => (port === label ? port : `${port} (events of ${label})`));
    return h("div", { class: "note warn missing" }, dot("warn"),
      h("div", null,
        h("p", null, h("strong", null, join.node), ` reads ${ports.join(" and ")}, which come at different rates. Which events belong together?`),
        h("div", { class: "choices" }, Object.entries(join.choices).map(([policy, yaml]) => h("button", { type: "button", class: "choice", title: yaml, onclick: () => act.join(join, yaml) },
          h("strong", null, policy), h("span", null, MEANING[policy] ?? yaml))))));
  }

  return { element, update };
}
