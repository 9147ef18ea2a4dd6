// What a flow can be made of: the kinds of nodes, and the streams that there are, with their rates.

import { fill, h } from "../dom.js";
import { rate } from "../format.js";
import { family, kindIcon } from "../parts/kinds.js";
import { sparkline } from "../parts/sparkline.js";
import { recent } from "../parts/times.js";

const GROUPS = [
  ["In and out", ["source", "static", "sink"]],
  ["Events", ["filter", "map", "sql", "aggregate", "match"]],
  ["Several streams", ["merge", "join"]],
  ["Work", ["function", "service", "job"]],
];

/** Buttons for the kinds; `add(kind)` is called for one. */
export function kindList(kinds, add) {
  const known = new Set(GROUPS.flatMap(([, names]) => names));
  const others = [...kinds.keys()].filter((kind) => !known.has(kind));
  const groups = others.length ? [...GROUPS, ["Others", others]] : GROUPS;
  return h("div", { class: "kind-list" }, groups.map(([title, names]) => h("section", null, h("h3", null, title),
    h("ul", null, names.filter((name) => kinds.has(name)).map((name) => h("li", null,
      h("button", { type: "button", class: `kind ${family(name)}`, title: kinds.get(name).doc, onclick: () => add(name) },
        h("span", { class: "kind-tile" }, kindIcon(name)),
        h("span", { class: "words" }, h("strong", null, name), h("span", null, kinds.get(name).doc)))))))));
}

const since = (at) => (Date.now() - new Date(at) < 2_000 ? "just now" : recent(at));

const STATES = { live: "good", idle: "none", stopped: "warn", unreachable: "bad" };

/** The registry: streams with their last rates and the time of their last event; `add(stream)` makes one a source. */
export function streamList(add) {
  const list = h("ul", { class: "stream-list" });
  const search = h("input", { type: "search", placeholder: "Find a stream", "aria-label": "Find a stream", oninput: () => draw() });
  const note = h("p", { class: "muted", hidden: true });
  const element = h("div", { class: "streams" }, search, note, list);
  const rows = new Map();
  let all = [];

  function row(stream) {
    const now = h("span", { class: "number" });
    const line = h("span", { class: "rates" });
    const dot = h("span");
    const when = h("span", { class: "muted" });
    const button = h("button", { type: "button", class: "stream", onclick: () => add(made.stream) },
      h("span", { class: "stream-head" }, dot, h("strong", null, stream.name.split(/(?<=[.])/).flatMap((part, at) => [at ? h("wbr") : null, part])), now),
      h("span", { class: "stream-more" }, when, line));
    const made = { item: h("li", null, button), stream };
    made.update = (told) => {
      made.stream = told;
      const rates = told.rates ?? [];
      dot.className = `dot ${STATES[told.state] ?? "none"}`;
      now.textContent = rate(rates.at(-1) ?? 0);
      when.textContent = `${told.state}, ${told.last_at ? since(told.last_at) : "no events yet"}`;
      button.title = `${told.name}: ${told.schema}. Add it to the flow.`;
      fill(line, sparkline(rates, { width: 56, height: 16, label: `events per second of ${told.name}` }));
    };
    return made;
  }

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const shown = all.filter((stream) => stream.name.toLowerCase().includes(wanted));
    for (const stream of all) {
      if (!rows.has(stream.name)) rows.set(stream.name, row(stream));
      rows.get(stream.name).update(stream);
    }
    const items = shown.map((stream) => rows.get(stream.name).item);
    if (items.length !== list.children.length || items.some((item, at) => list.children[at] !== item)) fill(list, items);
    search.hidden = all.length < 6;
    note.hidden = items.length > 0;
    note.textContent = all.length ? `No stream is called ${search.value}.` : "There are no streams yet. Make one in Streams, or with headwater publish; or add a source, which declares its own.";
  }

  return {
    element,
    update(streams) {
      // Those in use first, then by name.
      all = [...streams].sort((a, b) => (b.rates?.at(-1) > 0) - (a.rates?.at(-1) > 0) || a.name.localeCompare(b.name));
      draw();
    },
  };
}

/** The source that reads a stream: its columns, its time, its identity, as the registry has them. */
export function sourceOf(stream) {
  const made = stream.fields?.some((field) => field.name === "event_id") && stream.id === "event_id";
  const keys = { stream: stream.name };
  if (stream.schema) keys.schema = stream.schema;
  if (stream.event_time) Object.assign(keys, { event_time: stream.event_time, watermark: "10 seconds" });
  if (stream.id && !made) keys.id = stream.id;
  return keys;
}
