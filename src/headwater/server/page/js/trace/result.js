// One result: its values, the records behind it as graph and table, and how it was computed.

import { h, fill } from "../dom.js";
import { get } from "../api.js";
import { count, hour, many, time } from "../format.js";
import { failure, loading } from "../parts/empty.js";
import { table } from "../parts/table.js";
import { bipartite } from "./graph.js";
import { head } from "./head.js";
import { entityLink, recordLink, resultLink, searchLink } from "./places.js";
import { columns, cut, facts, visible, waiting } from "./shown.js";
import { stepwise } from "./steps.js";

const MOST = 1000;
const FIXED = ["result_id", "event_time"];

export async function result(root, params, app, store, signal) {
  const [asked, id] = [params.get("sink"), params.get("result")];
  const sink = store.sink(asked);
  const name = sink ? store.sinkName(sink) : asked;
  const shown = loading("Looking for the result…");
  root.append(shown);
  let told;
  try {
    told = await get("/result", { sink: name, result_id: id }, { signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    shown.replaceWith(failure(error), h("p", { class: "plain" }, h("a", { href: searchLink(sink ? name : "") }, "Search results")));
    return;
  }
  const { row } = told;
  const entity = sink?.streams?.length ? `hw:streams/${sink.streams[0]}/${id}` : told.entity;
  const graph = h("div", { class: "card graph" });
  const records = h("section", { class: "card" });
  shown.replaceWith(
    head(app, {
      back: [searchLink(name), `Results of ${cut(sink?.name ?? name, 60)}`],
      title: [cut(sink?.name ?? name, 120), " ", h("span", { class: "mono id" }, visible(id))],
      lead: [row.event_time ? h("span", null, "at ", h("time", { datetime: row.event_time, title: row.event_time }, time(row.event_time))) : "without an event time", sink && [" · flow ", h("bdi", null, visible(sink.flow))], told.marked && [" ", h("span", { class: "badge bad" }, "◆ holds a marked record")]],
      about: { sink: name, result_id: id },
    }),
    h("div", { class: "pair" },
      h("section", { class: "card" }, h("h2", null, "Its values"), facts(row, FIXED), onwards(store, sink, id, entity)),
      graph),
    records,
    stepwise({ sink: name, id, again: params.get("replay") === "1", started: () => app.replace({ sink: name, result: id, replay: 1 }), signal }));
  await behind({ graph, records, app, store, sink, name, id, signal });
}

/** Where a result goes on: it may be an event of a stream that other flows read. */
function onwards(store, sink, id, entity) {
  const readers = sink ? store.readers(sink) : [];
  return h("div", { class: "onwards" },
    readers.length > 0 && h("p", null, "It goes on as an event of ", list(sink.streams.map((one) => h("bdi", null, visible(one)))), ", read by ",
      list(readers.map((one) => h("a", { href: recordLink(store.sourceName(one), id) }, visible(one.qualified)))), "."),
    entity && h("p", { class: "muted" }, h("a", { href: entityLink(entity) }, "The whole way across flows"), " of ", h("code", null, visible(entity))));
}

const list = (items) => items.map((one, at) => [at > 0 && ", ", one]);

async function behind({ graph, records, app, store, sink, name, id, signal }) {
  fill(graph, sink?.lazy ? waiting("Its records are found by running the flow again…") : loading("Looking for its records…"));
  fill(records, h("h2", null, "Source records"));
  let told;
  try {
    told = await get("/backward", { sink: name, result_id: id, limit: MOST }, { signal });
  } catch (error) {
    if (error.name !== "AbortError") fill(graph, failure(error, () => behind({ graph, records, app, store, sink, name, id, signal })));
    return;
  }
  const groups = grouped(told.rows);
  const all = many(told.truncated ? told.total : told.rows.length, "record");
  const lists = groups.map(([source, rows]) => ({ source, rows, total: rows.length }));
  const link = (source, record) => recordLink(sourceName(store, source, sink), record);
  const boxes = new Map();
  const drawn = bipartite({
    many: lists.map((one) => ({ name: one.source, total: one.total, list: one.rows.map((row) => ({ name: one.source, id: row.id, note: hour(row.event_time), href: link(one.source, row.id), marked: row.marked })) })),
    one: { name: sink?.name ?? name, id }, kinds: ["source", "result"], go: app.go,
    light: (key) => { for (const [source, box] of boxes) box.select((row) => `${source}/${row.id}` === key); },
  });
  fill(graph,
    h("div", { class: "card-head" }, h("h2", null, "Where it came from"), h("span", { class: "badge" }, all)),
    told.rows.length ? drawn : h("p", { class: "muted" }, "No record is known to be behind it: its sink keeps no provenance (capture “none”), or it came of nothing."));
  fill(records, h("div", { class: "card-head" }, h("h2", null, "Source records"), h("span", { class: "muted" }, told.truncated ? `the first ${count(told.rows.length)} of ${count(told.total)} are shown` : all)));
  for (const one of lists) {
    const box = sourceTable(one, told.columns, store, sink, link);
    boxes.set(one.source, box);
    box.addEventListener("pointerover", (event) => drawn.light(`${one.source}/${idOf(box, one, event)}`));
    box.addEventListener("focusin", (event) => drawn.light(`${one.source}/${idOf(box, one, event)}`));
    box.addEventListener("pointerleave", () => drawn.light(null));
    records.append(h("div", { class: "of-source" }, h("h3", null, h("bdi", null, visible(one.source)), " ", h("span", { class: "muted number" }, count(one.total))), made(store, sink, one.source), box));
  }
}

function idOf(box, one, event) {
  const row = event.target.closest("tbody tr");
  return row ? one.rows[[...row.parentElement.children].indexOf(row)]?.id : undefined;
}

function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.source, [...(groups.get(row.source) ?? []), row]);
  return [...groups];
}

const sourceName = (store, name, sink) => {
  const source = store.source(name, sink?.flow);
  return source ? store.sourceName(source) : name;
};

/** That a source's records are another flow's results. */
function made(store, sink, name) {
  const makers = store.makers(store.source(name, sink?.flow));
  if (!makers.length) return null;
  return h("p", { class: "muted" }, "Its records are results of ", list(makers.map((one) => h("a", { href: searchLink(store.sinkName(one)) }, visible(one.qualified)))), "; each links to the one that made it.");
}

function sourceTable({ source, rows }, given, store, sink, link) {
  // Columns of other sources are null in every row of this one.
  const own = given.filter((one) => one.name !== "source" && (["id", "event_time"].includes(one.name) || rows.some((row) => row[one.name] !== null && row[one.name] !== undefined)));
  const known = store.source(source, sink?.flow);
  const makers = store.makers(known);
  return table({
    caption: `Records of ${source}`,
    columns: columns(own, { more: { event_time: { label: "event time" } } }),
    rows, href: (row) => link(source, row.id),
    actions: makers.length ? (row) => (makers.length === 1
      ? h("a", { href: resultLink(store.sinkName(makers[0]), row.id) }, "made by ", h("bdi", null, cut(makers[0].name, 24)))
      : h("a", { href: entityLink(`hw:streams/${known.streams[0]}/${row.id}`) }, "what made it")) : undefined,
  });
}
