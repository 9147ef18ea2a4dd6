// The search of results: sink, span of time, conditions on columns; and the way in for who holds a record.

import { h, fill } from "../dom.js";
import { get } from "../api.js";
import { count, many, zone } from "../format.js";
import { empty, failure, loading } from "../parts/empty.js";
import { icon } from "../parts/icons.js";
import { table } from "../parts/table.js";
import { byFlow, entityLink, recordLink, resultLink } from "./places.js";
import { columns, cut } from "./shown.js";
import { local, operators, predicate, read, takesValue, utc, family, written } from "./where.js";

const PAGE = 50;

/** The form and its results; what is asked stands in the address. */
export function search(root, params, app, store, signal) {
  const sink = store.sink(params.get("sink")) ?? store.sinks.find((one) => one.latest !== false && one.results) ?? store.sinks[0];
  if (params.get("sink") && !store.sink(params.get("sink"))) root.append(h("p", { class: "note warn", role: "status" }, h("span", { class: "dot warn" }), `The store has no sink “${cut(params.get("sink"), 80)}”; these are the results of ${sink.name}.`));
  const found = h("section", { class: "found", "aria-label": "Results" });
  const form = asking(params, app, store, sink);
  root.append(h("div", { class: "ask" }, form.card, holding(app, store)), found);
  results(found, form, store, sink, params, signal);
}

function asking(params, app, store, sink) {
  const types = new Map([["result_id", "bigint"], ...sink.columns.map((one) => [one.name, one.type])]);
  const sinks = options(store.sinks, sink, store.sinkName, (one) => ` (${count(one.results)})`);
  const choice = h("select", { onchange: () => app.go(`/trace?sink=${encodeURIComponent(choice.value)}`) }, sinks);
  const since = h("input", { type: "datetime-local", step: 1, value: local(params.get("since")) });
  const until = h("input", { type: "datetime-local", step: 1, value: local(params.get("until")) });
  const order = h("select", null, h("option", { value: "" }, "Newest first"), h("option", { value: "oldest", selected: params.get("order") === "oldest" }, "Oldest first"));
  const free = h("input", { id: "trace-where", type: "text", class: "mono", spellcheck: "false", autocomplete: "off", placeholder: "n >= 4 AND lo = hi", value: params.get("where") ?? "", "aria-describedby": "trace-sql" });
  const told = h("small", { id: "trace-sql" });
  const help = "DuckDB's SQL over the result's columns, result_id and event_time";
  const rows = params.getAll("c").map(read).filter((one) => one && types.has(one.column)).map((one) => condition(types, one, drop));
  const list = h("div", { class: "conditions" }, rows.map((row) => row.element));

  function drop(row) {
    rows.splice(rows.indexOf(row), 1);
    row.element.remove();
    adding.focus();
  }
  const adding = h("button", {
    class: "button small", type: "button",
    onclick: () => {
      const row = condition(types, { column: [...types.keys()][1] ?? "result_id", operator: "", value: "" }, drop);
      rows.push(row);
      list.append(row.element);
      row.element.querySelector("select").focus();
    },
  }, icon("plus"), "Condition");

  const wrong = (text) => {
    free.toggleAttribute("aria-invalid", false);
    if (text) free.setAttribute("aria-invalid", "true");
    told.className = text ? "error" : "";
    told.textContent = text ? cut(text, 600) : help;
    if (text) told.setAttribute("role", "alert");
  };
  wrong(null);

  function submit(event) {
    event.preventDefault();
    const conditions = rows.map((row) => row.read());
    try {
      predicate(conditions, types, free.value);
    } catch (error) {
      wrong(error.message);
      return;
    }
    const asked = new URLSearchParams({ sink: store.sinkName(sink) });
    for (const [key, given] of [["since", utc(since.value)], ["until", utc(until.value)], ["order", order.value], ["where", free.value.trim()]]) if (given) asked.set(key, given);
    for (const one of conditions) asked.append("c", written(one));
    app.go(`/trace?${asked}`);
  }

  const card = h("form", { class: "card", onsubmit: submit, "aria-label": "Search results" },
    h("div", { class: "fields" },
      h("label", { class: "field grow" }, h("span", null, "Results of"), choice),
      h("label", { class: "field" }, h("span", null, "From"), since),
      h("label", { class: "field" }, h("span", null, "Before"), until),
      h("label", { class: "field" }, h("span", null, "Order"), order)),
    list,
    h("div", { class: "fields" },
      h("div", { class: "field grow" }, h("span", null, h("label", { for: "trace-where" }, "SQL condition")), free, told),
      h("div", { class: "buttons go" }, adding, h("button", { class: "button primary", type: "submit" }, "Search"))),
    h("p", { class: "muted zone" }, `Times are in your zone, ${zone()}.`));
  return { card, wrong, where: () => predicate(rows.map((row) => row.read()), types, free.value) };
}

function options(list, chosen, named, more = () => "") {
  return byFlow(list).map(([flow, own]) => h("optgroup", { label: cut(flow, 60) },
    own.map((one) => h("option", { value: named(one), selected: one === chosen }, cut(one.name, 60) + more(one)))));
}

/** One condition: column, operator, value. */
function condition(types, given, drop) {
  const column = h("select", { "aria-label": "Column" }, [...types.keys()].map((one) => h("option", { value: one, selected: one === given.column }, cut(one, 40))));
  const operator = h("select", { "aria-label": "Operator" });
  const value = h("input", { "aria-label": "Value", spellcheck: "false", autocomplete: "off" });
  const gone = h("button", { class: "button quiet icon small", type: "button", title: "Remove the condition", "aria-label": "Remove the condition", onclick: () => drop(row) }, icon("close", 12));
  const update = (chosen = operator.value) => {
    const type = types.get(column.value);
    fill(operator, operators(type).map(([sign, words]) => h("option", { value: sign, selected: sign === chosen }, words)));
    const kind = family(type);
    value.type = { time: "datetime-local", date: "date" }[kind] ?? "text";
    if (kind === "time") value.step = "1";
    value.inputMode = kind === "number" ? "decimal" : "text";
    value.hidden = !takesValue(operator.value);
  };
  column.addEventListener("change", () => update());
  operator.addEventListener("change", () => update());
  update(given.operator);
  value.value = value.type === "datetime-local" ? local(given.value) : given.value;
  const row = {
    element: h("div", { class: "condition" }, column, operator, value, gone),
    read: () => ({ column: column.value, operator: operator.value, value: !takesValue(operator.value) ? "" : value.type === "datetime-local" ? utc(value.value) ?? "" : value.value }),
  };
  return row;
}

/** The way in for who holds a record. */
function holding(app, store) {
  const source = h("select", null, options(store.sources, store.sources[0], store.sourceName));
  const id = h("input", { required: true, spellcheck: "false", autocomplete: "off", class: "mono", placeholder: "42 or hw:streams/…" });
  const submit = (event) => {
    event.preventDefault();
    const text = id.value.trim();
    app.go(text.startsWith("hw:") ? entityLink(text) : recordLink(source.value, text));
  };
  // Where there is little room it waits folded, so that the results are near.
  return h("details", { class: "card holding", open: matchMedia("(min-width: 861px)").matches }, h("summary", null, h("h2", null, "I hold a record")), h("form", { onsubmit: submit, "aria-label": "I hold a record" },
    h("label", { class: "field" }, h("span", null, "Source"), source),
    h("label", { class: "field" }, h("span", null, "Id, or an entity's name"), id),
    h("div", { class: "buttons" }, h("button", { class: "button", type: "submit" }, "See its results", icon("right")))));
}

async function results(place, form, store, sink, params, signal) {
  fill(place, loading("Looking for results…"));
  const name = store.sinkName(sink);
  const ask = (after) => get("/results", { sink: name, where: form.where(), since: params.get("since"), until: params.get("until"), order: params.get("order") ?? "newest", limit: PAGE, after }, { signal });
  let told;
  try {
    told = await ask();
  } catch (error) {
    if (error.name === "AbortError") return;
    // What the server says of a condition stands beside it.
    if (error.status === 400 || error.status === 422 || error.status === undefined) {
      form.wrong(error.message);
      fill(place);
    } else fill(place, failure(error, () => results(place, form, store, sink, params, signal)));
    return;
  }
  if (!told.rows.length) {
    const narrowed = form.where() || params.get("since") || params.get("until");
    fill(place, empty(narrowed
      ? { title: "No result matches", text: "Widen the span of time, or take a condition away.", action: { text: `All results of ${cut(sink.name, 40)}`, href: `/trace?sink=${encodeURIComponent(name)}` } }
      : { title: `${cut(sink.name, 60)} has no results yet`, text: "They appear here with the first batch that gives one. The overview shows whether events arrive.", action: { text: "Overview", href: "/" } }));
    return;
  }
  let rows = told.rows;
  const box = table({
    caption: `Results of ${sink.name}`,
    columns: columns(told.columns, { more: { result_id: { label: "result" }, event_time: { label: "event time" } } }),
    rows, href: (row) => resultLink(name, row.result_id),
  });
  const foot = (next) => box.foot({ note: next ? `${count(rows.length)} shown of ${many(sink.results, "result")} in the sink; there are more` : `${many(rows.length, "result")}`, more: next && (() => further(next)) });
  async function further(next) {
    const more = await ask(next);
    rows = [...rows, ...more.rows];
    box.rows(rows);
    foot(more.next);
  }
  foot(told.next);
  fill(place, box);
}
