// One record of a source: its results, whether more may come, its values, marks, and why it is in no result.

import { h, fill } from "../dom.js";
import { get, post } from "../api.js";
import { count, hour, many, time } from "../format.js";
import { failure, loading } from "../parts/empty.js";
import { open } from "../parts/dialog.js";
import { table } from "../parts/table.js";
import { bipartite } from "./graph.js";
import { head } from "./head.js";
import { entityLink, resultLink } from "./places.js";
import { columns, cut, facts, visible } from "./shown.js";
import { whyNot } from "./why-not.js";

const MOST = 1000;
const FINAL = {
  true: ["good", "good", "final", "No more results of it can come."],
  false: ["warn", "warn", "may still grow", "It is alive: later batches may give more results of it."],
  null: ["", "none", "not known", "Whether more results may come is not known: its flow keeps no live graph."],
};

/** Whether a record's results are all there, as a badge. */
export function final(value) {
  const [kind, dot, words, why] = FINAL[String(value ?? null)] ?? FINAL.null;
  return h("span", { class: `badge ${kind}`, title: why }, h("span", { class: `dot ${dot}` }), words);
}

export async function record(root, params, app, store, signal) {
  const [asked, id] = [params.get("source"), params.get("id")];
  const source = store.source(asked);
  const name = source ? store.sourceName(source) : asked;
  const shown = loading("Looking for its results…");
  root.append(shown);
  let told;
  try {
    told = await get("/forward", { source: name, id, limit: MOST }, { signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    shown.replaceWith(failure(error), h("p", { class: "plain" }, h("a", { href: "/trace" }, "Search results")));
    return;
  }
  const reached = told.rows.filter((row) => row.result_id !== null && row.result_id !== undefined);
  const values = h("section", { class: "card" }, h("h2", null, "Its values"));
  const results = h("div", { class: "card graph" });
  const makers = store.makers(source);
  const entity = source?.streams?.length ? `hw:streams/${source.streams[0]}/${id}` : `hw:${source?.qualified ?? name}/${id}`;
  const marks = h("span");
  shown.replaceWith(
    head(app, {
      back: ["/trace", "Search"],
      title: [cut(source?.name ?? name, 120), " ", h("span", { class: "mono id" }, visible(id))],
      lead: ["a record", source && [" · flow ", h("bdi", null, visible(source.flow))], " ", marks],
      about: { source: name, id },
      more: h("button", { class: "button", type: "button", onclick: () => mark(app, name, id, () => own(values, marks, name, id, signal)) }, "Mark it…"),
    }),
    h("div", { class: "pair" }, values, results),
    ...(reached.length ? [listed(reached, told, store, source)] : []),
    whyNot({ source: name, id, flow: source?.flow, store, reached: reached.length, again: params.get("why") === "1", started: () => app.replace({ source: name, id, why: 1 }), signal }));
  drawn(results, reached, told, { app, store, source, name, id });
  values.append(links(makers, store, source, id, entity));
  await own(values, marks, name, id, signal);
}

/** What made the record, where it is an event of another flow's stream. */
function links(makers, store, source, id, entity) {
  return h("div", { class: "onwards" },
    makers.length > 0 && h("p", null, `It is an event of the stream ${visible(source.streams[0])}, made by `,
      makers.map((one, at) => [at > 0 && " or ", h("a", { href: resultLink(store.sinkName(one), id) }, visible(one.qualified))]), "."),
    h("p", { class: "muted" }, h("a", { href: entityLink(entity) }, "The whole way across flows"), " of ", h("code", null, visible(entity))));
}

/** A record's own values, as far as they are kept or can be read again, and the marks that hold it. */
async function own(place, marks, name, id, signal) {
  const wait = loading("Looking for its values…");
  place.querySelector(".own")?.remove();
  const box = h("div", { class: "own" }, wait);
  place.firstElementChild.after(box);
  try {
    const { row, columns: own_, marks: held } = await get("/record", { source: name, id }, { signal });
    fill(marks, badges(held ?? []));
    if (!row) wait.replaceWith(h("p", { class: "muted" }, "They are not kept: the source keeps no contents, and can't be read again."));
    else wait.replaceWith(row.event_time ? h("p", null, "at ", h("time", { datetime: row.event_time, title: row.event_time }, time(row.event_time))) : "", facts(Object.fromEntries(own_.map((one) => [one.name, row[one.name]]))));
  } catch (error) {
    if (error.name !== "AbortError") wait.replaceWith(h("p", { class: "note bad" }, h("span", { class: "dot bad" }), error.message));
  }
}

function bySink(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.sink, [...(groups.get(row.sink) ?? []), row]);
  return [...groups];
}

const sinkName = (store, source, name) => {
  const sink = store.sink(name, source?.flow);
  return sink ? store.sinkName(sink) : name;
};

function drawn(place, reached, told, { app, store, source, name, id }) {
  const whole = !told.truncated && !told.next;
  const title = h("div", { class: "card-head" }, h("h2", null, "What it reached"), h("span", { class: "badge" }, `${many(reached.length, "result")}${whole ? "" : " loaded, there are more"}`), final(told.rows[0]?.final));
  if (!reached.length) {
    fill(place, title, h("div", { class: "empty" }, h("h3", null, "It is in no result"), h("p", null, FINAL[String(told.rows[0]?.final ?? null)][3]), h("p", null, "Why not? The flow tells, below.")));
    return;
  }
  fill(place, title, bipartite({
    many: bySink(reached).map(([sink, rows]) => ({ name: sink, total: rows.length, list: rows.map((row) => ({ name: sink, id: row.result_id, note: hour(row.event_time), href: resultLink(sinkName(store, source, sink), row.result_id) })) })),
    one: { name: source?.name ?? name, id }, kinds: ["result", "source"], forward: true, go: app.go,
  }));
}

function listed(reached, told, store, source) {
  return h("section", { class: "card" }, h("h2", null, "Its results"), bySink(reached).map(([sink, rows]) => {
    const given = told.columns.filter((one) => one.name !== "sink" && one.name !== "final" && (["result_id", "event_time"].includes(one.name) || rows.some((row) => row[one.name] !== null && row[one.name] !== undefined)));
    return h("div", { class: "of-source" },
      h("h3", null, h("bdi", null, visible(sink)), " ", h("span", { class: "muted number" }, count(rows.length))),
      table({
        caption: `Results in ${sink}`, rows, href: (row) => resultLink(sinkName(store, source, sink), row.result_id),
        columns: [...columns(given, { more: { result_id: { label: "result" }, event_time: { label: "event time" } } }), { name: "final", label: "more to come?", show: final }],
      }));
  }));
}

const badges = (marks) => marks.map((one) => h("span", { class: "badge bad", title: `mark ${one.mark}: ${visible(one.reason ?? "")}` }, "◆ marked: ", h("bdi", null, cut(one.reason ?? "", 60))));

async function mark(app, source, id, done) {
  const reason = h("input", { required: true, maxlength: 500, autocomplete: "off" });
  const given = await open({
    title: `Mark record ${cut(id, 40)} of ${cut(source, 40)}`, action: "Mark it",
    body: [h("p", { class: "muted" }, "Results that hold it are then known as marked, those that came and those to come. Nothing is removed; a mark can be taken away."), h("label", { class: "field" }, h("span", null, "Reason"), reason)],
    answer: () => reason.value.trim() || null,
  });
  if (!given) return;
  const told = await app.writing(() => post("/marks", { source, ids: [id], reason: given }));
  if (!told) return;
  const results = told.results?.rows?.length ?? told.results;
  app.toast(typeof results === "number" ? `Marked; ${many(results, "result")} so far ${results === 1 ? "holds" : "hold"} it.` : "Marked.", "done");
  done();
}
