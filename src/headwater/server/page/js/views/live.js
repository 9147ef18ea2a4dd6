// Live: the graph of records and results as it grows, what is past greying, what is marked coloured; back in time as well.

import { h, fill } from "../dom.js";
import { follow, get } from "../api.js";
import { count, time } from "../format.js";
import { empty, failure, loading } from "../parts/empty.js";
import { icon } from "../parts/icons.js";
import { copying } from "../trace/head.js";
import { cut, visible } from "../trace/shown.js";
import { canvas } from "../live/canvas.js";
import { details, traceLink } from "../live/details.js";
import { Graph, LIMITS, counted, filtered, key } from "../live/model.js";
import { scrub } from "../live/scrub.js";
import { counters, filters, legend } from "../live/toolbar.js";

export const title = "Live";

const WAITING = 200; // batches kept while paused; beyond, the graph is loaded again
const MARKS = 15_000; // how often marks are looked for: they change what is long there

export function mount(root, params, app) {
  const ending = new AbortController();
  let leave = null;
  (async () => {
    fill(root, loading());
    try {
      const { flows } = await get("/graph/flows", {}, { signal: ending.signal });
      fill(root);
      if (flows.length) leave = show(root, params, app, flows, ending.signal);
      else none(root);
    } catch (error) {
      if (error.name !== "AbortError") fill(root, failure(error, () => app.go(location.pathname + location.search)));
    }
  })();
  return () => {
    ending.abort();
    leave?.();
  };
}

function none(root) {
  fill(root, h("header", { class: "page-head" }, h("h1", null, "Live")), h("div", { class: "card" }, empty({
    title: "No flow keeps a live graph",
    text: "The live graph says which records reached which results while a flow runs, and which can reach nothing more. headwater serve keeps one for the flows that are deployed; in Python, start a flow with live=True.",
    command: "flow.start(store=\"prov/\", live=True)", action: { text: "Deploy a flow", href: "/compose" },
  })));
}

function show(root, params, app, flows, signal) {
  const small = matchMedia("(max-width: 600px)").matches;
  const limit = Number(params.get("limit"));
  const chosen = flows.find((one) => one.flow === params.get("flow")) ?? flows.find((one) => params.has("flow") && one.deployed === params.get("flow")) ?? flows[0];
  const asked = { flow: chosen.flow, at: params.get("at"), name: params.get("name"), state: params.get("state"), marked: params.get("marked") === "true", limit: LIMITS.includes(limit) ? limit : small ? 1000 : 3000, v: params.get("v") };
  const standard = small ? 1000 : 3000;
  const graph = new Graph(asked.limit);
  let [selected, paused, held, dropped] = [null, false, [], 0];
  let [unfollow, loadingNow, marks, wanted] = [null, null, null, false];

  const keep = () => app.replace({ ...asked, limit: asked.limit === standard ? null : asked.limit, marked: asked.marked || null });
  const stage = canvas({
    selected: (vertex) => choose(vertex),
    opened: (vertex) => { const link = traceLink(vertex, asked.flow); if (link) app.go(link); },
  });
  const aside = details({ selected: (key) => choose(graph.vertices.get(key) ?? null, true) });
  const sliding = scrub({ went: (mark) => { asked.at = mark; keep(); begin(); } });
  const tools = filters(asked, {
    changed: (change) => { Object.assign(asked, change); keep(); if (change.limit) begin(); else redraw(); },
    searched: find,
  });
  const numbers = counters();
  const shown = h("p", { class: "shown", role: "status" });
  const badge = h("span", { class: "badge" });
  const trouble = h("div", { class: "trouble", role: "alert" });
  const pause = h("button", { class: "button", type: "button", onclick: () => halt(!paused) });
  const flow = h("select", { "aria-label": "Flow", onchange: () => app.go(`/live?flow=${encodeURIComponent(flow.value)}`) },
    flows.map((one) => h("option", { value: one.flow, selected: one === chosen }, cut(one.flow, 60) + (one.finished ? " (finished)" : ""))));

  root.append(
    h("header", { class: "page-head" }, h("h1", null, "Live"), h("label", { class: "flow" }, h("span", { class: "sr-only" }, "Flow"), flow), badge, h("div", { class: "end" }, pause, copying(app))),
    tools.bar, trouble,
    h("div", { class: "watching" },
      h("section", { class: "card flush", "aria-label": "Graph" }, h("div", { class: "card-head" }, shown, legend()), stage.box, sliding.bar),
      aside.panel),
    numbers.list);

  function say(kind, dot, words) {
    badge.className = `badge ${kind}`;
    fill(badge, h("span", { class: `dot ${dot}` }), words);
  }

  function choose(vertex, also = false) {
    selected = vertex;
    asked.v = vertex ? `${vertex.kind}:${vertex.name}:${vertex.id}` : null;
    keep();
    if (also) stage.select(vertex?.key ?? null);
    aside.show(vertex, asked.flow);
  }

  /** Draw what the filters let through; at most once in a frame. */
  function redraw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => {
      wanted = false;
      if (signal.aborted) return;
      const chosen_ = filtered(graph, asked);
      stage.show(chosen_, graph.watermark);
      tools.names(graph.names);
      root.classList.toggle("has-steps", chosen_.some((one) => one.kind === "step"));
      const narrowed = Boolean(asked.name || asked.marked || asked.state);
      const edges = edgesAmong(chosen_);
      fill(shown, h("strong", null, `${count(chosen_.length)} of ${count(graph.totals.vertices)} vertices shown`), `, ${count(edges)} of ${count(graph.totals.edges)} edges`,
        narrowed && h("span", { class: "muted" }, ` (filtered from the newest ${count(graph.vertices.size)})`));
      const { alive, expired, results, marked } = counted(chosen_);
      numbers.show({ alive: [alive, graph.totals.vertices - graph.totals.labels], expired, results, edges: [edges, graph.totals.edges], marked });
      if (selected) aside.show(graph.vertices.get(selected.key) ?? selected, asked.flow, graph.vertices.has(selected.key));
    });
  }

  function edgesAmong(vertices) {
    const there = new Set(vertices);
    let n = 0;
    for (const one of vertices) for (const edge of one.edges) if (edge.from === one && there.has(edge.to)) n += 1;
    return n;
  }

  /** Load the graph, now or at a watermark; now, go on following it. */
  async function begin() {
    loadingNow?.abort();
    unfollow?.();
    unfollow = null;
    [held, dropped] = [[], 0];
    const mine = (loadingNow = new AbortController());
    try {
      const told = await get("/graph", { flow: asked.flow, at: asked.at, limit: asked.limit }, { signal: mine.signal });
      fill(trouble);
      graph.limit = asked.limit;
      graph.load(told);
      if (asked.at === null && !signal.aborted) listen(told.position);
      if (!selected && asked.v) recall();
      redraw();
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(trouble, failure(error, begin));
      // Busy, or not there for a moment: it tries again by itself.
      if (!error.status || error.status === 429 || error.status >= 500) again(4000);
    }
    tell();
  }

  function recall() {
    const [, kind, name, id] = /^(source|result|step):(.*):([^:]+)$/.exec(asked.v) ?? [];
    const vertex = graph.vertices.get(key(kind, name, id));
    if (vertex) choose(vertex, true);
  }

  function listen(position) {
    unfollow = follow("/graph/follow", { flow: asked.flow, after: position, limit: 500 }, {
      change: heard,
      trouble: ({ error }) => fill(trouble, h("p", { class: "note warn" }, h("span", { class: "dot warn" }), visible(error))),
      state: (state) => {
        connection = state;
        tell();
      },
    });
  }
  let connection = "open";

  function heard(change) {
    sliding.add(change);
    if (paused) {
      held.push(change);
      if (held.length > WAITING) dropped += held.splice(0, held.length).length;
      tell();
    } else take(change);
  }

  function take(change) {
    graph.add(change);
    redraw();
    // A batch larger than what a change may hold: what it left out is fetched with the newest part.
    if (change.truncated) again();
  }

  let refreshing = null;
  function again(after = 2000) {
    if (refreshing || signal.aborted) return;
    refreshing = setTimeout(() => {
      refreshing = null;
      if (!paused && asked.at === null) begin();
    }, after);
  }

  function halt(on) {
    paused = on;
    if (!on && dropped) begin();
    else if (!on) for (const change of held.splice(0)) take(change);
    tell();
  }

  function tell() {
    const waiting = held.length + dropped;
    fill(pause, icon(paused ? "play" : "pause", 12), paused ? `Resume${waiting ? ` · ${count(waiting)} ${waiting === 1 ? "batch" : "batches"} waiting` : ""}` : "Pause");
    pause.disabled = asked.at !== null;
    pause.setAttribute("aria-pressed", String(paused));
    if (asked.at !== null) say("warn", "warn", `As of watermark ${time(asked.at)}`);
    else if (paused) say("warn", "warn", "Paused");
    else if (connection === "open") say("good", "good", chosen.finished ? "Finished" : "Following");
    else if (connection === "lost") say("warn", "warn", "Connecting again…");
    else say("bad", "bad", cut(connection, 80));
  }

  async function find(id) {
    const here = graph.find(id).filter((one) => !asked.name || one.name === asked.name);
    if (here.length) {
      choose(here[0], true);
      stage.focus();
      if (here.length > 1) app.toast(`${here.length} vertices have this id; the first is selected.`, "info");
      return;
    }
    try {
      const told = await get("/graph/vertex", { id, name: asked.name }, { signal });
      const row = told.rows[0];
      if (!row) throw new Error(`no vertex has the id ${id}`);
      // It may come to be shown: by its key it is known again then.
      selected = { ...row, id: String(row.id), key: key(row.kind, row.name, row.id), edges: [], expired: row.expired ?? Boolean(row.labelled ?? row.expired_at) };
      stage.select(selected.key);
      redraw();
    } catch (error) {
      if (error.name !== "AbortError") app.toast(error.message, "error");
    }
  }

  async function lookForMarks() {
    if (document.hidden || paused || asked.at !== null) return;
    const told = await get("/marks", {}, { signal }).catch(() => null);
    if (!told) return;
    const now = JSON.stringify(told.rows.map((row) => [row.mark, row.records]));
    if (marks !== null && now !== marks) begin();
    marks = now;
  }

  keep();
  sliding.set(asked.at);
  sliding.load(asked.flow, { signal }).catch((error) => error.name !== "AbortError" && app.toast(error.message, "error"));
  begin();
  lookForMarks();
  const timer = setInterval(lookForMarks, MARKS);
  return () => {
    clearInterval(timer);
    clearTimeout(refreshing);
    loadingNow?.abort();
    unfollow?.();
    sliding.end();
    stage.end();
  };
}
