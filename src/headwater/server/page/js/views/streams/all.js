// The registry as a table: how each stream goes, its last event, who reads it.

import { h, fill } from "../../dom.js";
import * as api from "../../api.js";
import { compact, count, many, rate } from "../../format.js";
import { open } from "../../parts/dialog.js";
import { empty, failure, loading } from "../../parts/empty.js";
import { badge, note, stateBadge } from "../../parts/health.js";
import { icon } from "../../parts/icons.js";
import { sparkline } from "../../parts/sparkline.js";
import { table } from "../../parts/table.js";
import { meanRate, recent } from "../../parts/times.js";
import { queries } from "./queries.js";

export const link = (stream) => `/streams?${new URLSearchParams({ stream })}`;

export function all(root, params, app) {
  const room = h("div", { class: "registry" }, loading());
  const asked = queries(params, app);
  fill(root,
    h("div", { class: "page-head" }, h("h1", null, "Streams"),
      h("div", { class: "end" }, h("button", { class: "button", type: "button", onclick: () => declare(app) }, icon("plus"), "New stream")),
      h("p", { class: "lead" }, "Named logs of events that last, and can be read again from any position.")),
    room, asked.element);

  const seen = new Map();
  let made = null;

  function draw({ streams }) {
    if (!streams.length) {
      made = null;
      fill(room, h("div", { class: "card" }, empty({
        title: "There is no stream yet",
        text: "Publish a file of events, and a stream is made for it. A flow that is deployed makes the streams it needs.",
        command: "headwater publish NAME FILE --create",
        action: { text: "New stream", onclick: () => declare(app) },
      })));
      return;
    }
    if (made) made.rows(streams);
    else {
      made = table({ caption: "Streams", key: (row) => row.name, columns: columns(seen), rows: streams, href: (row) => link(row.name) });
      fill(room, made);
    }
    asked.streams(streams);
  }

  const stop = api.follow("/streams/follow", { intervals: 30 }, {
    streams: draw,
    trouble: ({ error }) => app.toast(error, "error"),
    state: (state) => {
      room.classList.toggle("stale", state === "lost");
      if (!["open", "lost"].includes(state)) fill(room, h("div", { class: "card" }, failure(new Error(state), () => app.go("/streams"))));
    },
  });
  // What is followed comes with its first change; what is there now should not wait for that.
  api.get("/streams", { intervals: 30 }).then((told) => made ?? draw(told), (error) => made ?? fill(room, h("div", { class: "card" }, failure(error, () => app.go("/streams")))));

  return () => {
    stop();
    asked.end();
  };
}

const columns = (seen) => [
  { name: "name", label: "Stream", class: "name" },
  { name: "state", label: "State", show: stateBadge },
  { name: "rates", label: "Last 30 s", show: (rates) => h("span", { class: "rates" }, sparkline(rates ?? [], { width: 84, height: 22, label: "events per second" }), h("span", { class: "number" }, rate(meanRate(rates)))) },
  { name: "events", type: "bigint", label: "Events", show: (given) => count(given) },
  { name: "last_event", label: "Last event", class: "last", show: (event, row) => lastEvent(seen, row) },
  { name: "consumers", label: "Read by", show: readers },
  { name: "dead_letters", label: "Dead letters", type: "bigint", show: (given) => (given ? badge("warn", count(given)) : "0") },
];

/** The last event, on one line or, opened, on many. It stays the same element, so that it stays open as events come. */
function lastEvent(seen, row) {
  let one = seen.get(row.name);
  if (!one) {
    const line = h("span", { class: "mono" });
    const when = h("span", { class: "muted" });
    const whole = h("pre", { class: "code" });
    one = { line, when, whole, element: h("details", null, h("summary", null, when, line), whole) };
    seen.set(row.name, one);
  }
  if (!row.last_event) return row.last_at ? recent(row.last_at) : "";
  one.when.textContent = recent(row.last_at);
  one.line.textContent = JSON.stringify(row.last_event).slice(0, 200);
  one.whole.textContent = JSON.stringify(row.last_event, null, 2);
  return one.element;
}

function readers(consumers) {
  if (!consumers?.length) return h("span", { class: "muted" }, "nobody");
  const behind = Math.max(...consumers.map((one) => one.lag ?? 0));
  const title = consumers.map((one) => `${one.consumer}: ${many(one.lag ?? 0, "event")} behind`).join("\n");
  return h("span", { title }, many(consumers.length, "consumer"), behind ? h("span", { class: "muted" }, `, at most ${compact(behind)} behind`) : null);
}

/** Declare a stream that somebody will publish into. */
async function declare(app) {
  const field = (label, about, given) => {
    const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...given });
    return { input, element: h("label", { class: "field" }, h("span", null, label), input, about && h("small", null, about)) };
  };
  const name = field("Name", null, { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]{0,99}", placeholder: "radar" });
  const schema = field("Columns", "Names and types, as in SQL", { required: true, class: "mono", placeholder: "scan bigint, at timestamp, station string" });
  const at = field("Event time", "Which column says when an event happened; may be left out", { placeholder: "at" });
  const id = field("Id", "Which column names an event; else its position does", { placeholder: "scan" });
  const wrong = h("div", { "aria-live": "polite" });
  const made = await open({
    title: "New stream", action: "Create",
    body: [name.element, schema.element, h("div", { class: "fields two" }, at.element, id.element), wrong],
    async answer() {
      const body = { name: name.input.value.trim(), schema: schema.input.value.trim(), event_time: at.input.value.trim() || undefined, id: id.input.value.trim() || undefined };
      try {
        return await app.writing(() => api.post("/streams", body), { quiet: true });
      } catch (error) {
        fill(wrong, note("bad", error.message));
        return null;
      }
    },
  });
  if (made) app.go(link(name.input.value.trim()));
}
