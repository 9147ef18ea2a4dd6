// What became of a record on its way to each sink, in words.

import { h } from "../dom.js";
import { get } from "../api.js";
import { many, time } from "../format.js";
import { recordLink, resultLink } from "./places.js";
import { asking, cut, facts, visible } from "./shown.js";

// Kind: colour, the shape that goes with it, and a sentence.
const KINDS = {
  reached: ["good", "It is part of a result."],
  late: ["bad", "It came too late: the watermark had passed it, or its window."],
  filtered: ["bad", "A filter removed it, or the row that it was part of."],
  nothing: ["bad", "A step made no row of it."],
  open: ["warn", "It waits: its window is still open, or a partner may still come."],
  unmatched: ["bad", "It found no partner in a join, and none can come any more."],
  duplicate: ["bad", "An equal record was kept in its place."],
  passed_over: ["bad", "The result of its group came from other rows."],
  unread: ["warn", "It is in the source, but no batch has read it yet."],
};
const CHANGES = ["open", "unread"];

/** The card with its button; `again` asks at once. */
export function whyNot({ source, id, flow, store, reached, again, started, signal }) {
  const place = h("div", { class: "fates" });
  const button = h("button", { class: `button${reached ? "" : " primary"}`, type: "button" }, reached ? "What became of it on the way" : "Why is it in no result?");
  const card = h("section", { class: "card" },
    h("div", { class: "card-head" }, h("h2", null, reached ? "What else became of it" : "Why not"), h("span", { class: "end" }, button)),
    h("p", { class: "muted" }, "The flow runs once more over the records around it, and each end that it met is told: a filter, a closed window, a missing partner. It takes some seconds."),
    place);

  const run = asking({
    button, place, started, signal, words: "Following it through the flow…",
    ask: async (ending) => {
      const told = await get("/why-not", { source, id }, { signal: ending });
      return told.rows.length ? perSink(told.rows, { source, flow, store }) : h("p", { class: "muted" }, "No captured sink is below its source.");
    },
  });
  if (again) run();
  return card;
}

function parsed(values) {
  if (values && typeof values === "object") return values;
  try {
    const told = JSON.parse(values);
    return told && typeof told === "object" ? told : null;
  } catch {
    return null;
  }
}

function perSink(rows, about) {
  const groups = new Map();
  for (const row of rows) groups.set(row.sink, [...(groups.get(row.sink) ?? []), row]);
  return [...groups].map(([sink, ends]) => h("div", { class: "of-source" },
    h("h3", null, "On the way to ", h("bdi", null, visible(sink)), " ", h("span", { class: "muted" }, summary(ends))),
    h("ol", { class: "ends" }, ends.map((end) => fate(end, about)))));
}

/** All its ends at one sink in a few words. */
function summary(ends) {
  const reached = ends.filter((one) => one.kind === "reached").length;
  const waits = ends.some((one) => CHANGES.includes(one.kind));
  const words = reached ? `${many(reached, "result")} of ${many(ends.length, "end")}` : ends.length === 1 ? "one end" : `${ends.length} ends, none in a result`;
  return waits ? `${words}; this can still change` : `${words}; this is final`;
}

function fate(end, { source, flow, store }) {
  const [kind, sentence] = KINDS[end.kind] ?? ["", visible(end.kind)];
  const values = parsed(end.values);
  const moments = [["its time", end.event_time], [end.kind === "open" ? "closes when the watermark is at" : "closed at", end.closes_at], [end.kind === "late" ? "watermark then" : "watermark now", end.watermark]].filter(([, moment]) => moment);
  const sink = store.sink(end.sink, flow);
  return h("li", { class: `note ${kind}` }, h("span", { class: `dot ${kind || "none"}` }), h("div", { class: "fate" },
    h("strong", null, sentence),
    h("p", { class: "detail" }, h("span", { class: "badge" }, visible(end.step ?? "")), " ", h("bdi", null, cut(end.detail ?? "", 1000))),
    moments.length > 0 && h("p", null, moments.map(([words, moment], at) => [at > 0 && " · ", `${words} `, h("time", { datetime: moment, title: moment }, time(moment))])),
    end.survivor && h("p", null, "Kept in its place: ", h("a", { href: recordLink(source, end.survivor) }, `record ${visible(end.survivor)}`)),
    end.result_id && h("p", null, h("a", { href: resultLink(sink ? store.sinkName(sink) : end.sink, end.result_id) }, `Result ${visible(end.result_id)}`)),
    values && h("details", null, h("summary", null, "The row that it was part of there"), facts(values))));
}
