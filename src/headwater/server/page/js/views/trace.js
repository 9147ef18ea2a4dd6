// Trace: find a result and see where it came from, or start from a record and see what it reached.

import { h, fill } from "../dom.js";
import { empty, failure, loading } from "../parts/empty.js";
import { copying } from "../trace/head.js";
import { entity } from "../trace/entity.js";
import { load } from "../trace/places.js";
import { record } from "../trace/record.js";
import { result } from "../trace/result.js";
import { search } from "../trace/search.js";

export const title = "Trace";

export function mount(root, params, app) {
  const ending = new AbortController();
  show(root, params, app, ending.signal);
  return () => ending.abort();
}

async function show(root, params, app, signal) {
  fill(root, loading());
  let store;
  try {
    store = await load({ signal });
  } catch (error) {
    if (error.name !== "AbortError") fill(root, failure(error, () => show(root, params, app, signal)));
    return;
  }
  if (signal.aborted) return;
  fill(root);
  try {
    if (params.get("entity")) await entity(root, params, app, store, signal);
    else if (params.get("source") && params.get("id")) await record(root, params, app, store, signal);
    else if (params.get("sink") && params.get("result")) await result(root, params, app, store, signal);
    else begin(root, params, app, store, signal);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    console.error(error);
    fill(root, failure(error, () => show(root, params, app, signal)));
  }
}

function begin(root, params, app, store, signal) {
  root.append(h("header", { class: "page-head" }, h("h1", null, "Trace"), h("div", { class: "end" }, copying(app)),
    h("p", { class: "lead" }, "Find a result and see exactly which records it came from. Or start from a record and see every result that it reached.")));
  if (!store.sinks.length) {
    root.append(h("div", { class: "card" }, empty({
      title: "The store has no results to trace yet", text: "Deploy a flow: the results of its sinks appear here, each with the records behind it.",
      command: "headwater flow deploy flow.yaml", action: { text: "Compose a flow", href: "/compose" },
    })));
    return;
  }
  search(root, params, app, store, signal);
}
