// A flow as a graph: boxes for nodes, curves for what they read, frames for what is deployed as one, and live rates on all of it.
//
//   const graph = flowGraph({plan, layout, status, selected, onSelect(name), onConnect({from, output, to}), editable})
//   graph.element; graph.update(STATUS); graph.select(name); graph.change({plan, layout, …}); graph.end()
//
// More that may be given: `violations` (marked on their nodes, unless they are `soft`), `kinds` ({name: kind}, where there is no plan), `outputs`
// ({kind: [names]}: further outputs to drag from), `frames` ("units" | "subflows" | "none"), `onEdge(edge)`,
// `onKey(name, event)`, `rates` ({node: events a second}, on edges of what is not measured yet), `label` (what a reader is told the graph is).
// Keys: arrows go along edges and up and down, Home and End to the first and last node, Enter selects, + and − zoom, 0 fits.

import { fill, h, s } from "../dom.js";
import { box, frame, geometry, healthOf, line, WIDTH } from "./flowdrawing.js";
import { dragging } from "./flowdrag.js";

const LEAST = 0.65; // what can still be read
const USUAL = 0.85; // where it has to be scrolled anyway
const STEPS = [0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.5, 2];

export function flowGraph(given) {
  let state = { plan: null, layout: { width: 0, height: 0, nodes: {}, edges: [] }, status: null, selected: null, violations: [], kinds: {}, outputs: {}, frames: "units", rates: {}, editable: false, ...given };
  let shown = new Map();
  let lines = [];
  let size = { width: 0, height: 0 };
  let zoom = null;
  let current = null;
  let live = false;

  const svg = s("svg", { class: "fg-drawing", role: "group" });
  const scroll = h("div", { class: "fg-scroll" }, svg);
  const controls = h("div", { class: "fg-controls" },
    control("−", "Smaller", () => step(-1)), control("+", "Larger", () => step(1)), control("Fit", "Fit the width", fit));
  const element = h("div", { class: "flowgraph" }, scroll, controls);

  function control(text, name, go) {
    return h("button", { class: "button small", type: "button", title: name, "aria-label": name, onclick: go }, text);
  }

  // --- drawing ------------------------------------------------------------------------------

  function draw() {
    const { plan, layout, violations } = state;
    const held = element.contains(document.activeElement) && document.activeElement.closest?.("[data-node]");
    live = Boolean(state.status);
    const at = geometry(layout, live);
    size = at;
    const planned = new Map((plan?.nodes ?? []).map((row) => [row.node, row]));
    const wrong = new Map();
    for (const one of violations ?? []) if (one.node && !one.soft) wrong.set(one.node, [...(wrong.get(one.node) ?? []), one.text]);
    const ways = new Map((layout.edges ?? []).map((edge) => [edge, way(edge, layout, at)]));

    lines = [...ways].map(([edge, points]) => ({ edge, ...line({ edge, points, flow: plan?.flow ?? state.status?.flow ?? "", failures: Boolean(edge.output) }) }));
    shown = new Map(Object.entries(layout.nodes).map(([name, place]) => {
      const row = planned.get(name);
      const kind = row?.kind ?? state.kinds[name] ?? "?";
      const note = row?.promoted ? "for each event" : row?.static && kind !== "static" ? "once" : null;
      return [name, { ...box({
        name, kind, note, cardinality: row?.cardinality, wrong: wrong.get(name) ?? [], outputs: Object.hasOwn(state.outputs, kind) ? state.outputs[kind] : [],
        place: { x: at.left(place.x), y: at.middle(place.y) - at.high / 2 }, high: at.high, live, editable: state.editable && kind !== "sink",
      }), kind }];
    }));

    svg.setAttribute("viewBox", `0 0 ${at.width} ${at.height}`);
    svg.setAttribute("aria-label", state.label ?? `Flow ${plan?.flow ?? ""}: ${shown.size} nodes`);
    fill(svg, frames(ways, at),
      s("g", { class: "fg-edges" }, lines.map((one) => one.element)),
      s("g", { class: "fg-nodes" }, [...shown.values()].map((one) => one.element)));
    measured();
    select(state.selected);
    scaled(zoom);
    if (held && shown.has(held.dataset.node)) focus(held.dataset.node);
  }

  function frames(ways, at) {
    const { plan, layout } = state;
    const label = (numbers) => [...new Set(plan.subflows.filter((one) => numbers.includes(one.number)).map((one) => one.label))];
    const sets = !plan || state.frames === "none" ? []
      : state.frames === "subflows" ? plan.subflows.map((one) => ({ ...one, title: one.label === "static" ? "static" : `${one.number} · ${one.runtime} · ${one.label}` }))
        : plan.units.filter((one) => !one.idle).map((one) => {
          const labels = label(one.subflows);
          const single = labels.length === 1 && labels[0] !== "static";
          return { ...one, title: single ? `${one.runtime} · ${labels[0]}` : one.runtime };
        });
    return s("g", { class: "fg-frames", "aria-hidden": "true" }, sets.map((set) => {
      const edges = [...ways].filter(([edge]) => set.nodes.includes(edge.from) && set.nodes.includes(edge.to)).map(([, points]) => points);
      return frame({ ...set, edges, geometry: at, layout });
    }));
  }

  // --- what is measured ---------------------------------------------------------------------

  function measured() {
    const rows = new Map((state.status?.nodes ?? []).map((row) => [row.node, row]));
    const units = new Map((state.status?.units ?? []).map((unit) => [unit.id, unit]));
    const streams = new Map((state.status?.streams ?? []).map((row) => [row.stream, row.rate]));
    for (const [name, one] of shown) {
      const row = rows.get(name);
      one.show(row, row && healthOf(row, units));
    }
    for (const { edge, show } of lines) {
      const own = edge.output || edge.static ? null : rows.get(edge.from)?.rate_out ?? (Object.hasOwn(state.rates, edge.from) ? state.rates[edge.from] : null);
      show(edge.stream ? streams.get(edge.stream) ?? own : own);
    }
  }

  function update(status) {
    const turned = Boolean(status) !== live;
    state.status = status;
    if (turned) draw();
    else measured();
  }

  // --- selection and keys -------------------------------------------------------------------

  function select(name) {
    state.selected = name ?? null;
    for (const [own, one] of shown) {
      one.element.classList.toggle("selected", own === name);
      if (own === name) one.element.setAttribute("aria-current", "true");
      else one.element.removeAttribute("aria-current");
    }
    for (const { edge, element: drawn } of lines) drawn.classList.toggle("near", name !== null && (edge.from === name || edge.to === name));
    rove(shown.has(name) ? name : shown.has(current) ? current : shown.keys().next().value);
  }

  /** Into sight, without moving the page. */
  function reveal(name) {
    const drawn = shown.get(name)?.element.getBoundingClientRect();
    if (!drawn) return;
    const room = scroll.getBoundingClientRect();
    const by = (low, high, least, most) => (low < least ? low - least : high > most ? high - most : 0);
    scroll.scrollBy(by(drawn.left - 24, drawn.right + 24, room.left, room.right), by(drawn.top - 24, drawn.bottom + 24, room.top, room.bottom));
  }

  function rove(name) {
    current = name;
    for (const [own, one] of shown) one.element.setAttribute("tabindex", own === name ? 0 : -1);
  }

  function focus(name) {
    rove(name);
    shown.get(name)?.element.focus({ preventScroll: true });
    reveal(name);
  }

  function beyond(name, key) {
    const { nodes, edges } = state.layout;
    const here = nodes[name];
    const near = (names) => names.sort((a, b) => Math.abs(nodes[a].y - here.y) - Math.abs(nodes[b].y - here.y))[0];
    const names = Object.keys(nodes);
    if (key === "ArrowRight") return near(edges.filter((edge) => edge.from === name).map((edge) => edge.to));
    if (key === "ArrowLeft") return near(edges.filter((edge) => edge.to === name).map((edge) => edge.from));
    if (key === "ArrowUp" || key === "ArrowDown") {
      const side = key === "ArrowUp" ? -1 : 1;
      const there = names.filter((other) => (nodes[other].y - here.y) * side > 0);
      // The nearest, columns counted more than rows.
      const far = (other) => 3 * Math.abs(nodes[other].x - here.x) + Math.abs(nodes[other].y - here.y);
      return there.sort((a, b) => far(a) - far(b))[0];
    }
    return key === "Home" ? names[0] : key === "End" ? names.at(-1) : undefined;
  }

  svg.addEventListener("keydown", (event) => {
    const name = event.target.closest?.("[data-node]")?.dataset.node;
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = beyond(name, event.key);
    const zooms = { "+": 1, "=": 1, "-": -1 }[event.key];
    if (to !== undefined) focus(to);
    else if (event.key === "Enter" || event.key === " ") pick(name);
    else if (zooms) step(zooms);
    else if (event.key === "0") fit();
    else if (state.onKey?.(name, event) !== true) return;
    event.preventDefault();
  });

  function pick(name) {
    select(name);
    state.onSelect?.(name);
  }

  svg.addEventListener("click", (event) => {
    const node = event.target.closest("[data-node]");
    if (node) {
      if (!event.target.closest(".fg-handle")) pick(node.dataset.node);
      return;
    }
    const edge = lines.find((one) => one.element === event.target.closest(".fg-edge"))?.edge;
    if (edge && state.onEdge) state.onEdge(edge);
    else if (state.selected !== null && state.onSelect && !edge) {
      select(null);
      state.onSelect(null);
    }
  });

  const stopDragging = dragging(svg, {
    enabled: () => state.editable && Boolean(state.onConnect),
    nodeAt: (x, y) => document.elementFromPoint(x, y)?.closest?.("[data-node]")?.dataset.node,
    mark: (name) => {
      for (const [own, one] of shown) one.element.classList.toggle("aimed", own === name);
    },
    connect: (told) => state.onConnect(told),
  });

  // --- size ---------------------------------------------------------------------------------

  const whole = () => Math.min(1, (scroll.clientWidth || size.width) / size.width);
  const fitting = () => (whole() < LEAST ? USUAL : whole());

  /** All of it in sight, however small; where it can be read, also after the window has another size. */
  function fit() {
    scaled(whole() < LEAST ? Math.max(whole(), STEPS[0]) : null);
  }

  function scaled(wanted) {
    zoom = wanted;
    const scale = zoom ?? fitting();
    svg.setAttribute("width", Math.round(size.width * scale));
    svg.setAttribute("height", Math.round(size.height * scale));
    const large = size.width * scale > scroll.clientWidth + 1;
    controls.hidden = zoom === null && !large && scale === 1;
    element.classList.toggle("scrolls", large);
    element.classList.toggle("controlled", !controls.hidden);
  }

  function step(by) {
    const scale = zoom ?? fitting();
    const next = by > 0 ? STEPS.find((one) => one > scale + 0.01) : STEPS.findLast((one) => one < scale - 0.01);
    if (next) scaled(next);
  }

  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    step(event.deltaY < 0 ? 1 : -1);
  }, { passive: false });

  const observer = new ResizeObserver(() => scaled(zoom));
  observer.observe(scroll);
  draw();

  return {
    element,
    update,
    select,
    focus,
    change(more) {
      const there = state.selected !== null && shown.has(state.selected) && (more.selected === undefined || more.selected === state.selected);
      state = { ...state, ...more };
      draw();
      if (!there) reveal(state.selected);
    },
    rates(known) {
      state.rates = known;
      measured();
    },
    end() {
      observer.disconnect();
      stopDragging();
    },
  };
}

/** The points of an edge: out of one box, past others, into another, where inputs spread over its side. */
function way(edge, layout, at) {
  const from = layout.nodes[edge.from];
  const to = layout.nodes[edge.to];
  const last = (one) => one.bends?.at(-1)?.y ?? layout.nodes[one.from].y;
  const into = layout.edges.filter((one) => one.to === edge.to).sort((a, b) => last(a) - last(b));
  const apart = Math.min(14, (at.high - 20) / Math.max(into.length - 1, 1));
  const spread = (into.indexOf(edge) - (into.length - 1) / 2) * apart;
  const start = edge.output ? Math.min(at.high / 2 - 10, 16) : 0;
  return [
    [at.left(from.x) + WIDTH, at.middle(from.y) + start],
    ...(edge.bends ?? []).flatMap(({ x, y }) => [[at.left(x), at.middle(y)], [at.left(x) + WIDTH, at.middle(y)]]),
    [at.left(to.x), at.middle(to.y) + spread],
  ];
}
