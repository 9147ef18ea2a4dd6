// What can be done to a flow by hand: nodes added, connected, renamed, copied and removed, joins put in where they are missing.

import * as api from "../api.js";
import { askNode } from "./adding.js";
import { connected, duplicated, freshName, joined, keysOf, kindOf, names, readers, removed, renamed, withNode } from "./model.js";
import { sourceOf } from "./palette.js";

/** `flow` is the session; `selected()` is the chosen node, `choose(name)` chooses one. */
export function edits({ flow, kinds, streams, app, selected, choose }) {
  const { state } = flow;
  const verb = (list, one) => `${list.join(", ")} ${list.length === 1 ? `${one}s` : one}`;

  async function add(kind) {
    const told = await askNode({ kind, document: state.document, kinds, streams: [...streams().keys()], selected: selected() });
    if (!told) return;
    flow.edit(withNode(state.document, told.name, kind, told.keys));
    choose(told.name);
  }

  /** A stream as a source; the one that there is, if there is one. True if it is new. */
  function addStream(stream) {
    const own = names(state.document).find((one) => kindOf(state.document, one) === "source" && keysOf(state.document, one).stream === stream.name);
    if (own) {
      choose(own);
      return false;
    }
    const made = freshName(state.document, stream.name.split(".").at(-1));
    flow.edit(withNode(state.document, made, "source", sourceOf(stream)));
    app.toast(`${made} reads the stream ${stream.name}. Now add what is to be done with its events.`);
    choose(made);
    return true;
  }

  function connect(edge) {
    const kind = kinds.get(kindOf(state.document, edge.to));
    if (!kind || kind.inputs === "none") return app.toast(`${edge.to} is a ${kindOf(state.document, edge.to)}, which reads no stream of the flow.`, "error");
    const made = connected(state.document, edge, kind);
    if (!made) return app.toast(`${edge.to} reads ${edge.from} already.`);
    flow.edit(made);
    return choose(edge.to);
  }

  function rename(one, to) {
    flow.edit(renamed(state.document, one, to));
    choose(to);
  }

  function duplicate(one) {
    const { document, copy } = duplicated(state.document, one);
    flow.edit(document);
    choose(copy);
  }

  function remove(one) {
    const reading = readers(state.document, one);
    const { document, instead } = removed(state.document, one);
    choose(null);
    flow.edit(document);
    const after = !reading.length ? "" : instead ? ` ${verb(reading, "read")} ${instead} now.` : ` ${verb(reading, "read")} it no more.`;
    app.toast(`${one} is removed.${after} Undo brings it back.`);
  }

  /** One of the joins that a plan offers, in YAML, put before the node that needs it. */
  async function join(missing, yaml) {
    // The service reads the YAML; a node's place is all that is left to find.
    const told = await api.post("/flows/check", { text: `flow: joined\nnodes:\n  ${yaml}\n` });
    const [[wanted, node]] = Object.entries(told.document.nodes);
    const made = freshName(state.document, wanted);
    flow.edit(joined(state.document, missing, made, node.join));
    choose(made);
  }

  return { add, addStream, connect, rename, duplicate, remove, join };
}
