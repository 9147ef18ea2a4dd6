// A flow that is being edited. Its text is the truth: forms change the document, from which the service writes the text; the
// text is checked, and what is found is drawn. A text that is broken keeps the last document that could be read.

import * as api from "../api.js";
import { calmly } from "../dom.js";
import { emptyDocument } from "./model.js";
import { sketch } from "./sketch.js";

const MOST = 200;
const ONE_EDIT = 1500;
const KEPT = "headwater-compose";

/** `changed(reason)` is called after each change; reasons: "text", "document", "checked", "opened". */
export function session(changed) {
  const state = {
    text: "",
    document: emptyDocument(),
    plan: null,
    layout: sketch(emptyDocument()),
    violations: [],
    difference: null,
    code: [],
    lastEvents: {},
    readable: true,
    /** Whether the document came from a form, so that it holds whatever the check says. */
    fromForm: false,
    unwritten: false,
    busy: false,
    trouble: null,
    /** What the service has under this flow's name: {flow, version, wanted}; and how it does. */
    deployed: null,
    status: null,
  };
  let past = [];
  let future = [];
  let last = { key: null, at: 0 };
  let turn = 0;
  let ending = null;
  let checked = null;
  let begun = false;

  /** All that undoing needs; a text that is still to be written is of an older document. */
  const snapshot = () => ({ text: state.text, document: state.document, unwritten: state.unwritten });

  function remember(key) {
    begun = true;
    const now = Date.now();
    if (key !== null && key === last.key && now - last.at < ONE_EDIT) {
      last.at = now;
      return;
    }
    past.push(snapshot());
    if (past.length > MOST) past.shift();
    future = [];
    last = { key, at: now };
  }

  function keep() {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify({ text: state.text, flow: state.deployed?.flow ?? null, edited: past.length > 0 }));
    } catch {
      // Too large or not allowed: it is not kept when the page is loaded again.
    }
  }

  async function check(mine = ++turn) {
    ending?.abort();
    ending = new AbortController();
    state.busy = true;
    try {
      const told = await api.post("/flows/check", { text: state.text }, { signal: ending.signal });
      if (mine !== turn) return;
      checked = state.text;
      taken(told);
    } catch (error) {
      if (error.name === "AbortError" || mine !== turn) return;
      state.trouble = error.message;
    }
    state.busy = false;
    changed("checked");
  }

  function taken(told) {
    state.trouble = null;
    state.violations = (told.violations ?? []).map(unfinished);
    state.code = told.code ?? [];
    state.lastEvents = told.last_events ?? {};
    // Where nodes are incomplete there is no plan; what can be read of the text is still a document.
    if (told.document) state.document = { flow: String(told.document.flow ?? ""), nodes: told.document.nodes ?? {} };
    state.readable = Boolean(told.document) || state.fromForm;
    if (!state.readable) return;
    state.plan = told.plan ?? null;
    state.difference = told.difference ?? null;
    state.layout = told.layout ?? sketch(state.document);
  }

  const checkSoon = calmly(300, () => check());
  const writeSoon = calmly(180, () => write());

  async function write() {
    const mine = ++turn;
    state.busy = true;
    try {
      const { text } = await api.post("/flows/write", { document: state.document });
      if (mine !== turn) return;
      state.text = text;
      state.unwritten = false;
      state.trouble = null;
    } catch (error) {
      if (mine !== turn) return;
      state.busy = false;
      state.trouble = error.message;
      changed("checked");
      return;
    }
    keep();
    changed("text");
    await check(mine);
  }

  function restored({ text, document, unwritten = false }) {
    last = { key: null, at: 0 };
    writeSoon.cancel();
    state.text = text;
    state.document = document;
    state.fromForm = unwritten;
    state.unwritten = unwritten;
    changed("opened");
    keep();
    if (unwritten) write();
    else check();
  }

  return {
    state,
    /** Another flow, or the same anew; without a text, one is written of the document. */
    open(text, document = emptyDocument()) {
      begun = true;
      past = [];
      future = [];
      restored({ text: text ?? "", document, unwritten: text === null });
    },
    /** Another text, as a change that can be undone. */
    replace(text) {
      remember(null);
      restored({ text, document: state.document });
    },
    /** The text as it is typed. */
    type(text) {
      if (text === state.text) return;
      remember("text");
      writeSoon.cancel();
      state.text = text;
      state.fromForm = false;
      state.unwritten = false;
      turn += 1;
      keep();
      checkSoon();
    },
    /** Another document, of a form; `key` is the same for edits of one field, which are undone as one. */
    edit(document, key = null) {
      remember(key);
      checkSoon.cancel();
      state.document = document;
      state.fromForm = true;
      state.unwritten = true;
      turn += 1;
      writeSoon();
      changed("document");
    },
    undo() {
      const before = past.pop();
      if (!before) return;
      future.push(snapshot());
      restored(before);
    },
    redo() {
      const after = future.pop();
      if (!after) return;
      past.push(snapshot());
      restored(after);
    },
    /** Whether something was opened or edited. */
    begun: () => begun,
    canUndo: () => past.length > 0,
    canRedo: () => future.length > 0,
    recheck: () => check(),
    /** When all that was typed is written and checked. */
    async settled() {
      writeSoon.cancel();
      checkSoon.cancel();
      if (state.unwritten) await write();
      else if (checked !== state.text) await check();
    },
    end() {
      turn += 1;
      ending?.abort();
      checkSoon.cancel();
      writeSoon.cancel();
    },
  };
}

/** A source that nothing reads is not wrong, but not finished while one is composing. */
function unfinished(violation) {
  if (violation.rule !== "unread-source") return violation;
  return { ...violation, soft: true, text: "nothing reads this source yet; add a node that does" };
}

/** What was being edited when the page was left: {text, flow, edited}, or null. */
export function left() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

export const forget = () => sessionStorage.removeItem(KEPT);
