// What is asked of the live graph: filters, how many, an id; the legend; the counters.

import { h, fill } from "../dom.js";
import { count } from "../format.js";
import { cut } from "../trace/shown.js";
import { LIMITS } from "./model.js";

/** Filters; `changed(state)` is told of each change, `searched(id)` of an id to look for. */
export function filters(state, { changed, searched }) {
  const name = h("select", { onchange: () => changed({ name: name.value || null }) });
  const life = h("select", { onchange: () => changed({ state: life.value || null }) },
    [["", "Alive and expired"], ["alive", "Alive only"], ["expired", "Expired only"]].map(([value, words]) => h("option", { value, selected: value === (state.state ?? "") }, words)));
  const limit = h("select", { onchange: () => changed({ limit: Number(limit.value) }) }, LIMITS.map((one) => h("option", { value: one, selected: one === state.limit }, `Newest ${count(one)}`)));
  const marked = h("input", { type: "checkbox", checked: state.marked, onchange: () => changed({ marked: marked.checked }) });
  const id = h("input", { type: "search", class: "mono", spellcheck: "false", autocomplete: "off", placeholder: "an id", enterkeyhint: "search" });
  const bar = h("div", { class: "fields filters" },
    h("label", { class: "field" }, h("span", null, "Source or sink"), name),
    h("label", { class: "field" }, h("span", null, "Records"), life),
    h("label", { class: "field" }, h("span", null, "Vertices"), limit),
    h("label", { class: "check" }, marked, "Marked only"),
    h("form", { class: "find", role: "search", onsubmit: (event) => { event.preventDefault(); if (id.value.trim()) searched(id.value.trim()); } },
      h("label", { class: "field" }, h("span", null, "Find an id"), id), h("button", { class: "button", type: "submit" }, "Find")));
  let known = null;
  return {
    bar,
    /** The names that can be chosen: those that are shown, and the one that is chosen. */
    names(list) {
      const own = [...new Set([...list.map((one) => one.name), ...(state.name ? [state.name] : [])])].sort();
      if (String(own) === known) return;
      known = String(own);
      fill(name, h("option", { value: "" }, "All"), own.map((one) => h("option", { value: one, selected: one === state.name }, cut(one, 40))));
    },
  };
}

export function legend() {
  const entry = (kinds, words) => h("li", null, h("span", { class: `mark ${kinds}`, "aria-hidden": "true" }), words);
  return h("ul", { class: "legend", "aria-label": "Legend" },
    entry("source", "record, alive"), entry("source expired", "record, expired"), entry("result", "result"), h("li", { class: "steps" }, h("span", { class: "mark step", "aria-hidden": "true" }), "row of a step"), entry("source marked", "marked record"), entry("result marked", "result that holds one"));
}

/** How many of what; each only changes where it differs. */
export function counters() {
  const facts = [["alive", "Alive"], ["expired", "Expired"], ["results", "Results"], ["edges", "Edges"], ["marked", "Marked"]];
  const values = new Map(facts.map(([key]) => [key, [h("dd", { class: "number" }), h("small", { class: "muted number" })]]));
  const list = h("dl", { class: "counters" }, facts.map(([key, words]) => h("div", null, h("dt", null, words), values.get(key))));
  return {
    list,
    show(counts) {
      for (const [key, [value, more]] of values) {
        const [shown, total] = [counts[key]].flat();
        value.textContent = count(shown);
        more.textContent = total === undefined || total === null ? "" : `of ${count(total)}`;
      }
    },
  };
}
