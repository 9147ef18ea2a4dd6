// The last event of what a node reads, beside its query: what there is to ask for.

import { fill, h } from "../dom.js";
import { ago, value as shown } from "../format.js";
import { has, inputsOf, keysOf, kindOf } from "./model.js";

// These let events pass as they are: what comes out looks like what went in.
const PASSING = new Set(["filter", "merge"]);

/** Where an event of an input can be seen: {stream, event, at, before}, or null. `before` is a node that it has not passed yet. */
export function sampleOf(target, document, streams, lastEvents) {
  let [name, output] = target.split(".");
  const seen = new Set();
  let before = null;
  while (has(document, name) && !seen.has(name)) {
    seen.add(name);
    const keys = keysOf(document, name);
    const kind = kindOf(document, name);
    const own = kind === "source" && keys.stream ? keys.stream : [document.flow, name, output].filter(Boolean).join(".");
    const found = streams.get(own);
    const event = found?.last_event ?? lastEvents?.[own] ?? null;
    if (event) return { stream: own, event, at: found?.last_at ?? null, before };
    const [input] = inputsOf(keys);
    if (!PASSING.has(kind) || !input || output) return null;
    before ??= name;
    [name, output] = input.target.split(".");
  }
  return null;
}

/** The samples of a node's inputs, one below another; `insert(column)` puts a name where one is typing. */
export function samples({ insert }) {
  const element = h("div", { class: "samples", "aria-live": "off" });
  let last = "";

  function update(name, document, streams, lastEvents) {
    const own = kindOf(document, name) === "source" && keysOf(document, name).stream;
    const inputs = own ? [{ port: name, target: name }] : inputsOf(keysOf(document, name)).filter(({ target }) => target);
    const found = inputs.map((input) => ({ ...input, sample: sampleOf(input.target, document, streams, lastEvents) }));
    const told = JSON.stringify(found.map(({ target, port, sample }) => [target, port, sample?.stream, sample?.event, sample?.before]));
    if (told === last) return;
    last = told;
    element.hidden = !inputs.length;
    fill(element, found.map(one));
  }

  function one({ port, target, sample }) {
    if (!sample) {
      return h("section", { class: "sample" }, h("h4", null, `Events of ${target}`),
        h("p", { class: "muted" }, "No event to show yet. Once the flow is deployed, its last one is here."));
    }
    const { stream, event, at, before } = sample;
    const fields = typeof event === "object" && event !== null ? Object.entries(event) : null;
    return h("section", { class: "sample" },
      h("h4", null, "Last event of ", h("a", { href: `/streams?stream=${encodeURIComponent(stream)}` }, stream), port !== target && h("span", { class: "muted" }, ` (port ${port})`)),
      h("p", { class: "muted small" }, [at && ago(at), before && `before ${before}, which only lets events pass or not`].filter(Boolean).join("; ")),
      fields
        ? h("dl", { class: "event" }, fields.map(([name, told]) => [
          h("dt", null, h("button", { type: "button", class: "column", title: `Put ${name} into the query`, onclick: () => insert(name) }, name)),
          h("dd", { class: "mono", title: shown(told) }, shown(told) || h("span", { class: "muted" }, "null"))]))
        : h("pre", { class: "code" }, String(event)));
  }

  return { element, update };
}
