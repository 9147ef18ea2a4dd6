// Compose: a flow built and changed in the browser, as a graph and as text, deployed while it is watched.

import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { touched } from "../compose/changes.js";
import { askDeploy, outcome, refused } from "../compose/deploying.js";
import { editor } from "../compose/editor.js";
import { edits } from "../compose/edits.js";
import { inspector } from "../compose/inspector.js";
import { has, keysOf, kindOf, kindsOf, names } from "../compose/model.js";
import { opening } from "../compose/opening.js";
import { kindList, streamList } from "../compose/palette.js";
import { problems } from "../compose/problems.js";
import { forget, session } from "../compose/session.js";
import { summary } from "../compose/summary.js";
import { tabs } from "../compose/tabs.js";
import { toolbar } from "../compose/toolbar.js";
import { askVersion } from "../compose/versions.js";
import { confirm } from "../parts/dialog.js";
import { empty, failure, loading } from "../parts/empty.js";
import { flowGraph } from "../parts/flowgraph.js";

export const title = "Compose";

export function mount(root, params, app) {
  root.classList.add("wide");
  fill(root, loading());
  let leave = null;
  let gone = false;
  const start = () => api.get("/flows/kinds").then(({ kinds }) => {
    if (!gone) leave = composer(root, params, app, new Map(kinds.map((kind) => [kind.kind, kind])));
  }, (error) => !gone && fill(root, failure(error, start)));
  start();
  return () => {
    gone = true;
    leave?.();
  };
}

function composer(root, params, app, kinds) {
  const known = new Map();
  let streams = new Map();
  let selected = params.get("node");
  let health = app.health?.() ?? null;

  const flow = session(changed);
  const { state } = flow;
  const act = edits({ flow, kinds, streams: () => streams, app, selected: () => selected, choose: select });
  const files = opening({ flow, known, streams: () => streams, params, app, choose: (one) => (selected = one), addStream });
  const head = toolbar({ ...files, name: (given) => flow.edit({ ...state.document, flow: given.trim() }, "flow"), copy: async () => app.copy(await files.link(state.deployed && !touched(state.difference))), undo: flow.undo, redo: flow.redo, versions, undoChange, deploy });
  const text = editor((typed) => flow.type(typed));
  const panel = inspector({ kinds, streams: () => streams, act: { ...act, edit: flow.edit, close: () => select(null, true) } });
  const whole = summary({ node: (one) => select(one, true) });
  const wrong = problems({ node: (one) => select(one, true), line: (at) => { centre.show("yaml"); text.go(at); }, join: act.join });
  const registry = streamList(addStream);
  const outputs = Object.fromEntries([...kinds.values()].map((kind) => [kind.kind, kind.outputs ?? []]));
  const graph = flowGraph({ layout: state.layout, editable: true, outputs, onSelect: (one) => select(one), onConnect: act.connect, onEdge: (edge) => select(edge.to), onKey: keyed, label: "The flow as a graph" });
  const frames = h("select", { "aria-label": "Frames", onchange: () => graph.change({ frames: frames.value }) },
    [["units", "Frames: units"], ["subflows", "Frames: sub-flows"], ["none", "No frames"]].map(([value, words]) => h("option", { value }, words)));
  const nothing = h("div", { class: "nothing" }, empty({
    title: "A flow begins with a stream",
    text: "Choose one of the streams that there are, or add a source that declares one. You can also open a deployed flow, or a file.",
    action: h("div", { class: "buttons" },
      h("button", { class: "button", type: "button", onclick: () => act.add("source") }, "Add a source"),
      h("button", { class: "button", type: "button", onclick: () => files.example() }, "Show an example")),
  }));
  const done = h("div", { class: "done" });
  const code = h("div", { class: "code-note" });
  const picture = h("div", { class: "canvas" }, nothing, graph.element);
  const help = h("p", { class: "muted small", id: "editor-help" }, "The text is the flow: edit it here or by the forms, both stay the same. Forms write it anew, without comments.");
  const centre = tabs([["graph", "Graph", picture], ["yaml", "YAML", h("div", { class: "yaml" }, text.element, help)]], { label: "The flow as", chosen: params.get("tab"), changed: turned, end: frames });
  const palette = tabs([["streams", "Streams", registry.element], ["nodes", "Nodes", kindList(kinds, act.add)]], { label: "Add" });
  const side = h("aside", { class: "card side", "aria-label": "Details", tabindex: -1 });

  fill(root, head.element,
    h("div", { class: "composer" },
      h("section", { class: "card palette", "aria-label": "Add to the flow" }, palette.element),
      h("section", { class: "card middle", "aria-label": "The flow" }, code, done, centre.element, wrong.element),
      side));
  turned();

  // --- what is shown ------------------------------------------------------------------------

  function changed(reason) {
    if (selected !== null && !has(state.document, selected)) selected = null;
    state.deployed = known.get(state.document.flow) ?? null;
    if (reason === "text" || reason === "opened") text.show(state.text);
    if (reason === "checked") {
      text.violations(state.violations);
      draw();
      address();
    }
    if (reason !== "text") shown();
  }

  function draw() {
    const there = names(state.document).length > 0;
    nothing.hidden = there;
    graph.element.hidden = !there;
    graph.change({ plan: state.plan, layout: state.layout, violations: state.violations, kinds: kindsOf(state.document), selected, rates: rates() });
  }

  function shown() {
    head.update(state, { canUndo: flow.canUndo(), canRedo: flow.canRedo(), refusal: refusal() });
    wrong.update(state);
    const refusing = refused(state, health);
    if (code.textContent !== (refusing?.textContent ?? "")) fill(code, refusing);
    const wanted = selected === null ? whole.element : panel.element;
    if (side.firstElementChild !== wanted) fill(side, wanted);
    if (selected === null) whole.update(state);
    else panel.show(selected, state);
  }

  /** Before anything is deployed, an edge has the rate of the stream that its source reads. */
  function rates() {
    return Object.fromEntries(names(state.document).filter((one) => kindOf(state.document, one) === "source")
      .map((one) => [one, streams.get(keysOf(state.document, one).stream)?.rates?.at(-1)]).filter(([, rate]) => rate !== undefined));
  }

  function turned() {
    frames.hidden = centre.chosen() !== "graph";
    address();
  }

  function address() {
    const tab = centre.chosen();
    app.replace({ flow: state.deployed ? state.document.flow : null, node: state.deployed ? selected : null, tab: tab === "graph" ? null : tab });
  }

  function select(one, focus = false) {
    selected = one;
    graph.select(one);
    shown();
    address();
    if (one !== null && matchMedia("(max-width: 1100px)").matches) side.scrollIntoView({ block: "start" });
    if (focus && one !== null) side.focus({ preventScroll: true });
    if (focus && one === null) picture.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function addStream(stream) {
    if (act.addStream(stream)) palette.show("nodes");
  }

  function keyed(one, event) {
    if (event.key !== "Delete" && event.key !== "Backspace") return false;
    act.remove(one);
    return true;
  }

  // --- deploying ----------------------------------------------------------------------------

  function refusal() {
    if (!names(state.document).length) return "There is nothing to deploy yet.";
    if (state.trouble) return state.trouble;
    if (!state.readable) return "The text can't be read as it is.";
    if (refused(state, health)) return "This flow runs code, which this service does not take.";
    if (state.violations.some((one) => !one.soft)) return "Something is wrong with the flow; it is told below the graph.";
    if (state.violations.length) return "The flow is not finished: something has to read each source.";
    if (state.deployed && !touched(state.difference) && state.difference) return "This is what is deployed.";
    return null;
  }

  async function deploy() {
    await flow.settled();
    const why = refusal();
    if (why) return app.toast(why, "error");
    const told = await askDeploy({ state, app });
    return told && finished(told);
  }

  async function finished(told) {
    forget();
    fill(done, outcome(told, () => fill(done)));
    known.set(told.flow, { ...known.get(told.flow), flow: told.flow, version: told.version, wanted: "running" });
    centre.show("graph");
    await flow.recheck();
  }

  async function undoChange() {
    const one = state.document.flow;
    if (!(await confirm({ title: `Undo the change of ${one}`, text: `Version ${state.deployed.version} is taken back: another version like the one before it is deployed, and nodes that come back go on where they had left off.`, action: "Undo change", danger: false }))) return;
    const told = await app.writing(() => api.post(`/flows/${api.part(one)}/undo`));
    if (!told) return;
    await files.open(one);
    await finished({ flow: one, ...told });
  }

  async function versions() {
    const taken = await askVersion(state.document.flow).catch((error) => app.toast(error.message, "error"));
    if (typeof taken === "string") flow.replace(taken);
  }

  // --- live ---------------------------------------------------------------------------------

  const endings = [
    api.follow("/flows/follow", {}, { status: (told) => {
      for (const one of told.flows) known.set(one.flow, { ...known.get(one.flow), flow: one.flow, version: one.version, wanted: one.wanted });
      state.status = told.flows.find((one) => one.flow === state.document.flow) ?? null;
      graph.update(state.status);
      if (state.deployed?.version !== known.get(state.document.flow)?.version) flow.recheck();
      else if (selected !== null) panel.show(selected, state);
    } }),
    api.follow("/streams/follow", { intervals: 30 }, { streams: (told) => {
      streams = new Map(told.streams.map((one) => [one.name, one]));
      registry.update(told.streams);
      graph.rates(rates());
    } }),
  ];

  function shortcut(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const key = event.key.toLowerCase();
    if (key === "z") (event.shiftKey ? flow.redo : flow.undo)();
    else if (key === "y") flow.redo();
    else return;
    event.preventDefault();
  }
  document.addEventListener("keydown", shortcut);

  (async () => {
    health ??= await api.get("/health").catch(() => null);
    await files.begin();
  })();

  return () => {
    for (const end of endings) end();
    document.removeEventListener("keydown", shortcut);
    flow.end();
    head.end();
    graph.end();
  };
}
