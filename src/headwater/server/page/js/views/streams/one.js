// One stream: what it is, its events as they come, and what can be done with it.

import { h, fill } from "../../dom.js";
import * as api from "../../api.js";
import { count, many, rate, time } from "../../format.js";
import { confirm } from "../../parts/dialog.js";
import { failure, loading } from "../../parts/empty.js";
import { badge, stateBadge } from "../../parts/health.js";
import { icon } from "../../parts/icons.js";
import { sparkline } from "../../parts/sparkline.js";
import { table } from "../../parts/table.js";
import { meanRate, recent } from "../../parts/times.js";
import { liveEvents } from "./events.js";
import { publishBox } from "./publish.js";

const EVERY = 2_000;
const SHOWN = 50;

export function one(root, name, params, app) {
  const path = `/streams/${api.part(name)}`;
  const state = h("span");
  const buttons = h("div", { class: "end" });
  const facts = h("dl", { class: "facts" });
  const side = h("div", { class: "side" });
  const front = h("div", { class: "front" });
  const consumers = h("div", { class: "readers" });
  const letters = h("div", { class: "letters" });
  const speed = h("div", { class: "speed" });
  const picked = h("div", { class: "picked", "aria-live": "polite" });
  const room = h("div", { class: "one-stream" }, front, side);
  fill(root,
    h("div", { class: "page-head" }, h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "/streams" }, "Streams"), h("span", { "aria-hidden": "true" }, "/")), h("h1", null, name), state, buttons),
    loading());

  let box = null;
  let live = null;
  let over = false;
  let latest = null;

  async function look() {
    let stream;
    try {
      stream = await api.get(path, { intervals: 60 });
    } catch (error) {
      // What is shown stays while the service is away; a stream that is gone is told.
      if (over || (latest && error.status !== 404)) return;
      clearInterval(timer);
      live?.end();
      fill(root, failure(error, () => app.go(location.pathname + location.search)), h("p", { class: "plain" }, h("a", { href: "/streams" }, "All streams")));
      return;
    }
    if (over) return;
    if (!latest) build(stream);
    latest = stream;
    update(stream);
  }

  function build(stream) {
    const after = params.get("after");
    live = liveEvents({
      caption: after ? `Events from position ${after}` : "Last events",
      start: () => api.get(`${path}/events`, after ? { after, limit: SHOWN } : { newest: true, limit: SHOWN }),
      path: `${path}/follow`, live: !after, onRow: pick,
    });
    box = publishBox(stream, app, look);
    fill(front, after && h("p", { class: "note info" }, h("span", { class: "dot info" }), h("span", null, "From a position on. ", h("a", { href: `/streams?${new URLSearchParams({ stream: name })}` }, "Show the last events"))), live.element, picked, consumers, letters);
    fill(side,
      h("section", { class: "card publishing", "aria-label": "Publish" }, h("h2", null, "Publish"), box.element),
      h("section", { class: "card about", "aria-label": "About the stream" }, speed, facts),
      h("section", { class: "card flush listed", "aria-label": "Columns" }, h("div", { class: "card-head" }, h("h2", null, "Columns")), columns(stream)));
    fill(root, root.firstElementChild, room);
  }

  function columns(stream) {
    const role = (column) => [column === stream.event_time && "event time", column === stream.id && "id"].filter(Boolean).map((word) => h("span", { class: "badge info" }, word));
    return table({ caption: "Columns", columns: [{ name: "name", show: (given) => h("span", { class: "column" }, given, role(given)) }, { name: "type", show: (type) => h("code", { title: type }, type) }], rows: stream.fields });
  }

  function update(stream) {
    if (state.dataset.state !== stream.state) {
      state.dataset.state = stream.state;
      fill(state, stateBadge(stream.state));
      offer(stream);
    }
    box.update(stream);
    fill(speed, sparkline(stream.rates ?? [], { width: 320, height: 44, label: "events per second over the last minute" }),
      h("span", null, h("strong", { class: "number" }, rate(meanRate(stream.rates, 30))), h("span", { class: "muted" }, " in the last 30 s")));
    const fact = (label, ...value) => [h("dt", null, label), h("dd", null, value)];
    fill(facts,
      fact("Events", h("span", { class: "number" }, count(stream.events)), h("span", { class: "muted" }, `, positions ${stream.start} to ${stream.end}`)),
      fact("Last event", stream.last_at ? h("span", { title: stream.last_at }, recent(stream.last_at)) : "never", stream.last_time && h("span", { class: "muted" }, `; its time is ${time(stream.last_time)}`)),
      fact("Producer", stream.producer?.text ?? stream.producer?.name ?? "unknown"),
      fact("Created", time(stream.created)),
      fact("Kept in", stream.log));
    readers(stream);
    dead(stream);
  }

  let readersTable = null;
  function readers(stream) {
    const rows = stream.consumers ?? [];
    if (!rows.length) {
      readersTable = null;
      fill(consumers);
      return;
    }
    if (readersTable) return void readersTable.rows(rows);
    readersTable = table({ caption: "Consumers", key: (row) => row.consumer, rows, columns: [
      { name: "consumer" }, { name: "lag", type: "bigint", label: "behind", show: (lag) => count(lag) },
      { name: "reading", label: "now", show: (reading, row) => h("span", { class: "muted" }, reading ? "reading" : recent(row.at)) }] });
    fill(consumers, h("section", { class: "card flush", "aria-label": "Consumers" }, h("div", { class: "card-head" }, h("h2", null, "Consumers")), readersTable));
  }

  async function dead(stream) {
    if (letters.dataset.count === String(stream.dead_letters)) return;
    letters.dataset.count = stream.dead_letters;
    letters.hidden = !stream.dead_letters;
    if (!stream.dead_letters) return;
    const told = await api.get(`${path}/letters`, { limit: 20 }).catch(() => null);
    const rows = told?.letters ?? told?.rows ?? [];
    const names = [...new Set(rows.flatMap(Object.keys))];
    fill(letters, h("section", { class: "card flush", "aria-label": "Dead letters" },
      h("div", { class: "card-head" }, h("h2", null, "Dead letters"), badge("warn", count(stream.dead_letters)), h("span", { class: "muted" }, "events that could not be published, and why")),
      names.length ? table({ caption: "Dead letters", columns: names.map((column) => ({ name: column })), rows: rows.slice().reverse() }) : null));
  }

  /** An event in full. */
  function pick(row) {
    const text = JSON.stringify(row, null, 2);
    const id = latest.id ? row[latest.id] : row.event_id;
    fill(picked, h("section", { class: "card" },
      h("div", { class: "card-head" }, h("h2", null, "Event"), h("div", { class: "end" },
        id !== undefined && h("a", { class: "button small", href: `/trace?${new URLSearchParams({ entity: `hw:streams/${name}/${id}` })}` }, "What became of it"),
        h("button", { class: "button small", type: "button", onclick: () => app.copy(text) }, icon("copy"), "Copy"),
        h("button", { class: "button quiet icon small", type: "button", "aria-label": "Close", onclick: () => fill(picked) }, icon("close", 12)))),
      h("pre", { class: "code" }, text)));
  }

  function offer(stream) {
    const stopped = stream.state === "stopped";
    fill(buttons,
      h("a", { class: "button", href: `/compose?${new URLSearchParams({ stream: name })}` }, "Use in a flow"),
      stopped ? h("button", { class: "button", type: "button", onclick: resume }, icon("play"), "Resume") : h("button", { class: "button", type: "button", onclick: stop }, icon("stop"), "Stop"),
      h("button", { class: "button danger", type: "button", onclick: remove }, "Remove"));
  }

  async function stop() {
    const sure = await confirm({ title: `Stop ${name}?`, text: "No more events are accepted until it is resumed. Who reads it gets what is there.", action: "Stop" });
    if (sure && (await app.writing(() => api.post(`${path}/stop`)))) look();
  }

  async function resume() {
    if (await app.writing(() => api.post(`${path}/resume`))) look();
  }

  async function remove() {
    const readers = (latest.consumers ?? []).map((reader) => reader.consumer);
    const sure = await confirm({
      title: `Remove ${name}?`, action: readers.length ? "Remove all the same" : "Remove",
      text: `Its ${many(latest.events, "event")} are deleted for good.${readers.length ? ` ${readers.join(", ")} ${readers.length === 1 ? "reads" : "read"} it, and will fail.` : ""}`,
    });
    if (!sure || !(await app.writing(() => api.del(path, { force: readers.length > 0 })))) return;
    app.toast(`${name} is removed`, "done");
    app.go("/streams");
  }

  const timer = setInterval(() => !document.hidden && look(), EVERY);
  look();
  return () => {
    over = true;
    clearInterval(timer);
    live?.end();
  };
}
