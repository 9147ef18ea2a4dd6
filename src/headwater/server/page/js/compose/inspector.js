// The panel of a node: its name, what it reads, its keys, what is wrong with them, and what is known of it.

import { fill, h } from "../dom.js";
import { count, rate } from "../format.js";
import { note } from "../parts/health.js";
import { icon } from "../parts/icons.js";
import { family, kindIcon } from "../parts/kinds.js";
import { field } from "./fields.js";
import { has, isName, keyOf, keysOf, kindOf, names, readers, withKeys } from "./model.js";
import { samples } from "./sample.js";

/** `kinds` by their names; `act` has `edit(document, key)`, `rename(name, to)`, `duplicate(name)`, `remove(name)`, `close()`. */
export function inspector({ kinds, act, streams }) {
  const element = h("div", { class: "inspector" });
  let open = null;
  let typing = null;
  element.addEventListener("focusin", (event) => {
    if (event.target.dataset?.sql === "yes") typing = event.target;
  });

  function show(name, state) {
    const kind = kindOf(state.document, name);
    const keys = keysOf(state.document, name);
    // What is typed here comes back with each check, perhaps in other words; only what came from elsewhere draws the form again.
    if (open?.name === name && open.kind === kind && others(open.told, keys).every((key) => key === typed())) {
      open.update(state);
      return;
    }
    open = build(name, kind, keys, state);
    fill(element, open.parts);
    open.update(state);
  }

  const typed = () => element.contains(document.activeElement) && document.activeElement.closest("[data-key]")?.dataset.key;

  /** The keys of which two nodes say something different. */
  const others = (one, other) => [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((key) => JSON.stringify(one[key]) !== JSON.stringify(other[key]));

  function build(name, kind, keys, state) {
    const told = kinds.get(kind);
    let current = state;
    const made = { name, kind, told: keys };
    const known = told?.keys ?? [];
    const context = {
      kind: told ?? { most: null },
      streams: [...streams().keys()],
      targets: () => targets(name, current.document, kinds),
    };

    function change(key, value) {
      const now = { ...keysOf(current.document, name) };
      if (value === undefined) delete now[key];
      else now[key] = value;
      const document = withKeys(current.document, name, now);
      made.told = keysOf(document, name);
      act.edit(document, `${name}.${key}`);
    }

    const fields = known.map((key) => [key.key, field({ key, value: keys[key.key], change: (value) => change(key.key, value), context }), key]);
    const main = fields.filter(([own, , key]) => key.required || own in keys || shownFirst(kind, own));
    const more = fields.filter((one) => !main.includes(one));
    const general = h("div", { class: "general" });
    const facts = h("dl", { class: "facts" });
    const last = samples({ insert: (column) => insert(element.contains(typing) ? typing : element.querySelector('[data-sql="yes"]'), column) });
    const title = h("input", { class: "node-name", value: name, "aria-label": "Name of the node", spellcheck: "false", autocapitalize: "off" });
    const wrongName = h("small", { class: "error-text", role: "alert", hidden: true });

    title.addEventListener("change", () => {
      const to = title.value.trim();
      const taken = to !== name && has(current.document, to);
      wrongName.hidden = isName(to) && !taken;
      wrongName.textContent = taken ? `There is a node ${to} already.` : "A name is a letter, then letters, digits, _ and -.";
      if (to !== name && isName(to) && !taken) act.rename(name, to);
    });

    const details = more.length > 0 && h("details", { class: "more" }, h("summary", null, `${more.length} more keys`), more.map(([, element]) => element));
    made.parts = [
      h("header", { class: `node-head ${family(kind)}` }, h("span", { class: "kind-tile" }, kindIcon(kind)), h("div", { class: "grow" }, title, wrongName),
        h("button", { class: "button quiet icon small", type: "button", title: "Close", "aria-label": "Close this node", onclick: () => act.close() }, icon("close", 12))),
      h("p", { class: "muted" }, h("strong", null, kind), told ? `: ${told.doc}` : ": there is no such kind"),
      general,
      main.map(([, element]) => element),
      last.element,
      details,
      facts,
      h("div", { class: "buttons" },
        h("button", { class: "button small", type: "button", onclick: () => act.duplicate(name) }, icon("copy", 12), "Duplicate"),
        h("button", { class: "button small danger", type: "button", onclick: () => act.remove(name) }, icon("close", 12), "Delete")),
    ];

    made.update = (now) => {
      current = now;
      const mine = now.violations.filter((one) => one.node === name);
      const own = known.map((key) => key.key);
      for (const [key, element] of fields) {
        const said = mine.filter((one) => keyOf(one, own) === key).map((one) => one.text);
        element.errors(said);
        if (said.length && details && details.contains(element)) details.open = true;
      }
      const rest = mine.filter((one) => keyOf(one, own) === null);
      fill(general, rest.map((one) => note(one.soft ? "warn" : "bad", one.text)));
      fill(facts, knownOf(name, now));
      last.update(name, now.document, streams(), now.lastEvents);
    };
    return made;
  }

  function knownOf(name, state) {
    const row = state.plan?.nodes.find((one) => one.node === name);
    const live = state.status?.nodes.find((one) => one.node === name);
    const unit = state.plan?.units.find((one) => one.nodes.includes(name));
    const said = [
      row && ["label", row.label === "static" ? "static: computed once" : `events of ${row.label}`],
      row?.cardinality && ["cardinality", `${row.cardinality} out for each in`],
      row && ["runs as", `${row.runtime}${row.promoted ? ", for each event as it reads a stream" : ""}`],
      row && unit && ["part of", `sub-flow ${row.subflow}, unit ${unit.number}${unit.idle ? " (nothing to run)" : ""}`],
      ["read by", readers(state.document, name).join(", ") || "nothing"],
      live && live.rate_in !== null && ["in", rate(live.rate_in)],
      live && live.rate_out !== null && ["out", rate(live.rate_out)],
      live && live.in_transit !== null && ["queue", count(live.in_transit)],
      live?.verdict && ["health", `${live.verdict}${live.reason ? `: ${live.reason}` : ""}`],
    ];
    return said.filter(Boolean).map(([term, text]) => [h("dt", null, term), h("dd", null, text)]);
  }

  return { element, show, forget: () => (open = null) };
}

/** What a node may read: all others that don't end a path, and their further outputs. */
export function targets(name, document, kinds) {
  return names(document).filter((own) => own !== name && kindOf(document, own) !== "sink")
    .flatMap((own) => [own, ...(kinds.get(kindOf(document, own))?.outputs ?? []).map((output) => `${own}.${output}`)]);
}

// What one is asked for first although it may be left out: a source has a stream or a format.
const FIRST = { source: ["stream", "schema", "event_time", "watermark", "id"], sink: ["stream"], static: ["value"], join: ["policy", "on"], job: ["run", "schema"], aggregate: ["by"], match: ["define", "by"] };
export const shownFirst = (kind, key) => (FIRST[kind] ?? []).includes(key);

/** A column's name where one was typing. */
function insert(control, column) {
  if (!control) return;
  const { selectionStart: at, selectionEnd: end } = control;
  control.setRangeText(column, at, end, "end");
  control.dispatchEvent(new Event("input"));
  control.focus();
}
