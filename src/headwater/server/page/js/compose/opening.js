// Where a flow comes from and where it goes: deployed ones, files, links, what was left unfinished, an example.

import * as api from "../api.js";
import { h } from "../dom.js";
import { has, emptyDocument, freshName } from "./model.js";
import { sourceOf } from "./palette.js";
import { forget, left } from "./session.js";

const LARGEST = 1_000_000;

/** `known` are the flows that the service has, by name; `addStream(stream)` makes one a source. */
export function opening({ flow, known, streams, params, app, choose, addStream }) {
  async function flows() {
    const told = await api.get("/flows").catch(() => ({ flows: [] }));
    for (const one of told.flows) known.set(one.flow, one);
    return told.flows.filter((one) => !one.is_query);
  }

  async function open(wanted, draft = null) {
    try {
      const told = await api.get(`/flows/${api.part(wanted)}`);
      known.set(wanted, told);
      choose(params.get("flow") === wanted && has(told.document, params.get("node")) ? params.get("node") : null);
      flow.open(told.text, told.document);
      if (draft !== null && draft !== told.text) {
        flow.replace(draft);
        app.toast("Your edits of before are here again; undo takes them back.");
      }
    } catch (error) {
      app.toast(error.message, "error");
      fresh();
    }
  }

  function fresh(document = emptyDocument(freshFlow())) {
    forget();
    choose(null);
    flow.open(null, document);
  }

  function freshFlow() {
    let wanted = "flow-1";
    for (let n = 2; known.has(wanted); n += 1) wanted = `flow-${n}`;
    return wanted;
  }

  async function load(file) {
    if (file.size > LARGEST) return app.toast(`${file.name} is too large to be a flow file.`, "error");
    const text = await file.text();
    choose(null);
    flow.replace(text);
    return app.toast(`${file.name} is loaded; undo takes it back.`);
  }

  function save() {
    const { text, document } = flow.state;
    const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "text/yaml" })), download: `${document.flow || "flow"}.yaml` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /** Three nodes on a stream that there is, or on one that they declare. */
  function example() {
    const stream = [...streams().values()].find((one) => one.fields?.length && one.state === "live") ?? null;
    const source = stream ? sourceOf(stream) : { stream: "readings", schema: "n bigint, at timestamp, watts double", event_time: "at", watermark: "10 seconds", id: "n" };
    const column = stream?.fields.find((one) => !["event_id", "event_time"].includes(one.name))?.name;
    const from = freshName(emptyDocument(), source.stream.split(".").at(-1));
    const where = column ? `${column} is not null` : "watts > 100";
    fresh({ flow: freshFlow(), nodes: { [from]: { source }, chosen: { filter: { from, where } }, out: { sink: { from: "chosen", stream: `${from}-chosen` } } } });
  }

  /** The address of this flow as it is; a text that is not deployed goes along in it. */
  async function link(deployed) {
    if (deployed) return location.href;
    const { text } = flow.state;
    return `${location.origin}/compose?draft=${await packed(text)}`;
  }

  /** What the address asks for, or what was left unfinished; not where somebody was faster and began something else. */
  async function begin() {
    await flows();
    const draft = left();
    const stream = params.get("stream");
    const given = params.get("draft") && (await unpacked(params.get("draft")).catch(() => app.toast("The link is not complete: its flow can't be read.", "error")));
    if (flow.begun()) return null;
    if (given) return flow.open(given);
    const wanted = params.get("flow") ?? (stream ? null : draft?.flow ?? null);
    if (wanted) return open(wanted, draft?.flow === wanted && draft.edited ? draft.text : null);
    if (!stream && draft?.edited) return flow.open(draft.text);
    fresh();
    const told = stream && (await api.get(`/streams/${api.part(stream)}`).catch((error) => app.toast(error.message, "error")));
    return told && addStream(told);
  }

  return { flows, open, fresh, load, save, link, example, begin };
}

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

/** A text in as few letters as an address takes. */
async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(letters) {
  const bytes = Uint8Array.from(atob(letters.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}
