// An entity by its name, `hw:streams/<stream>/<id>` for one: what it came from and what came of it, across flows and jobs.

import { h, fill } from "../dom.js";
import { get } from "../api.js";
import { many } from "../format.js";
import { empty, failure, loading } from "../parts/empty.js";
import { table } from "../parts/table.js";
import { head } from "./head.js";
import { entityLink, recordLink, resultLink } from "./places.js";
import { cellOf, columns, line, visible } from "./shown.js";

export async function entity(root, params, app, store, signal) {
  const name = params.get("entity");
  const here = store.entity(name);
  const ends = params.get("ends") === "1";
  const places = h("section", { class: "card" }, h("h2", null, "Here it is"), loading("Looking for it in the store…"));
  const only = h("input", { type: "checkbox", checked: ends, onchange: () => app.go(`/trace?entity=${encodeURIComponent(name)}${only.checked ? "&ends=1" : ""}`) });
  root.append(
    head(app, { back: ["/trace", "Search"], title: h("span", { class: "mono id" }, visible(name)), lead: here.stream ? ["an event of the stream ", h("bdi", null, visible(here.stream))] : "an entity", about: { entity: name },
      more: h("label", { class: "check" }, only, "Only the ends of the way") }),
    places);
  const ways = [["backward", "What it came from", "Nothing is known to be before it: it is where the way begins."], ["forward", "What came of it", "Nothing has come of it so far."]];
  const sections = ways.map(([path, title, none]) => {
    const card = h("section", { class: "card" }, h("h2", null, title));
    root.append(card);
    return way(card, { path, title, none, name, steps: !ends, store, signal });
  });
  await Promise.all([found(places, here, store, signal), ...sections]);
}

/** Which results and records it is: a stream may be published by several versions of a sink, only one of which made it. */
async function found(place, here, store, signal) {
  const made = await Promise.all(here.sinks.slice(-8).map((sink) => {
    const own = store.sinkName(sink);
    return get("/result", { sink: own, result_id: here.id }, { signal }).then(() => [sink, own], () => null);
  }));
  const results = made.filter(Boolean);
  if (signal.aborted) return;
  if (!results.length && !here.sources.length) {
    place.remove();
    return;
  }
  fill(place, h("h2", null, "Here it is"), h("ul", { class: "places" },
    results.map(([sink, own]) => h("li", null, h("span", { class: "badge" }, "result"), " ", h("a", { href: resultLink(own, here.id) }, `of ${visible(sink.qualified)}`))),
    here.sources.map((source) => h("li", null, h("span", { class: "badge" }, "record"), " ", h("a", { href: recordLink(store.sourceName(source), here.id) }, `of ${visible(source.qualified)}`)))));
}

async function way(card, { path, title, none, name, steps, store, signal }) {
  const wait = loading("Following the way…");
  card.append(wait);
  try {
    const told = await get(`/${path}`, { entity: name, steps }, { signal });
    if (!told.rows.length) {
      wait.replaceWith(h("p", { class: "muted" }, none));
      return;
    }
    card.firstElementChild.append(" ", h("span", { class: "badge" }, many(told.rows.length, "entity").replace("entitys", "entities")));
    const rows = inOrder(told.rows, store, path);
    wait.replaceWith(table({
      caption: title, rows, href: (row) => entityLink(row.id), note: told.truncated ? "Only the first are shown." : null,
      columns: columns(told.columns, { more: { id: { label: "entity", type: "string", show: line }, job: { label: path === "backward" ? "used by" : "made by" }, event_time: { label: "event time" }, functions: { show: (value) => cellOf(Array.isArray(value) ? value.join(", ") : value) } } }),
    }));
  } catch (error) {
    if (error.name === "AbortError") return;
    wait.replaceWith(error.status === 404 ? empty({ title: "Nobody knows it", text: error.message }) : failure(error));
  }
}

/** Nearest first: flows are ordered by the streams between them, jobs that no stream ties in come last. */
function inOrder(rows, store, path) {
  const rank = new Map(store.flows.map((one) => [one.flow, 0]));
  for (let turn = 0; turn < rank.size; turn += 1) {
    let moved = false;
    for (const source of store.sources) for (const maker of store.makers(source)) {
      if (maker.flow === source.flow || rank.get(source.flow) > rank.get(maker.flow)) continue;
      rank.set(source.flow, rank.get(maker.flow) + 1);
      moved = true;
    }
    if (!moved) break;
  }
  const turn = path === "backward" ? -1 : 1;
  const far = (row) => (rank.has(row.job) ? turn * rank.get(row.job) : Number.MAX_SAFE_INTEGER);
  return rows.map((row, at) => [row, at]).sort(([a, i], [b, j]) => far(a) - far(b) || i - j).map(([row]) => row);
}
