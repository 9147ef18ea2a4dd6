// The elements of a flow's drawing: boxes, curves and frames, in pixels of a layout's cells.

import { s } from "../dom.js";
import { compact, number } from "../format.js";
import { family, kindPath } from "./kinds.js";

export const WIDTH = 164;
const GAP = 84; // for names of streams and ports on edges
const NARROW = 68; // for rates alone
const MARGIN = 30;
const TALL = 86;
const SHORT = 50;

/** Pixels of a layout: boxes are taller where they show what is measured. */
export function geometry(layout, live) {
  const high = live ? TALL : SHORT;
  const named = layout.edges?.some((edge) => edge.stream || edge.output || edge.port !== edge.from);
  const gap = named ? GAP : NARROW;
  const across = WIDTH + gap;
  const down = high + 46;
  return {
    high,
    width: Math.max(layout.width, 1) * across - gap + 2 * MARGIN,
    height: Math.max(layout.height, 1) * down - (down - high) + 2 * MARGIN,
    left: (x) => MARGIN + x * across,
    middle: (y) => MARGIN + y * down + high / 2,
  };
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Words beside a shape: circle, triangle, square or ring, as elsewhere on the page. */
const HEALTH = {
  healthy: ["good", "M0-4a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z"],
  bursting: ["warn", "M0-4.5 5 4H-5Z"],
  growing: ["bad", "M-4-4h8v8h-8Z"],
  failed: ["bad", "M-4-4h8v8h-8Z"],
  retrying: ["warn", "M0-4.5 5 4H-5Z"],
  stopped: ["none", "M0-3.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7Z"],
  unknown: ["none", "M0-3.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7Z"],
};

/** How a node is, in a word: its unit's state where that says more than the verdict. */
export function healthOf(row, units) {
  const state = units.get(row.unit)?.state;
  if (state === "failed" || state === "retrying" || state === "stopped") return state;
  return row.verdict ?? null;
}

/** A node: a box with its kind and name, and rates, queue and health where there are some. The answer has `element` and `show(row, health)`. */
export function box({ name, kind, cardinality, note, wrong, outputs, place, high, live, editable }) {
  const rate = s("text", { class: "fg-rate", x: 12, y: 64 });
  const queue = s("text", { class: "fg-small", x: 12, y: 79 });
  const shape = s("path", { class: "fg-health", transform: `translate(${WIDTH - 68} 75)` });
  const word = s("text", { class: "fg-small", x: WIDTH - 60, y: 79 });
  const title = s("title");
  const element = s("g", { class: `fg-node ${family(kind)}${wrong.length ? " wrong" : ""}`, transform: `translate(${place.x} ${place.y})`, tabindex: -1, role: "button", dataset: { node: name } },
    title,
    s("rect", { class: "fg-box", width: WIDTH, height: high, rx: 8 }),
    s("rect", { class: "fg-tile", x: 8, y: 9, width: 32, height: 32, rx: 7 }),
    s("g", { class: "fg-icon", transform: "translate(16 17)" }, kindPath(kind)),
    s("text", { class: "fg-name", x: 48, y: 22 }, cut(name, wrong.length ? 14 : 16)),
    s("text", { class: "fg-small", x: 48, y: 38 }, cut(note ? `${kind} · ${note}` : kind, cardinality ? 15 : 20)),
    cardinality && cardinality !== "unknown" && s("text", { class: "fg-small fg-ratio", x: WIDTH - 10, y: 38, "text-anchor": "end" }, `×${cardinality}`),
    live && [s("path", { class: "fg-rule", d: `M1 49.5H${WIDTH - 1}` }), rate, queue, shape, word],
    wrong.length > 0 && s("g", { class: "fg-mark", transform: `translate(${WIDTH - 16} 17)` },
      s("path", { d: "M0-8 8.5 7H-8.5Z" }), s("text", { y: 5, "text-anchor": "middle" }, "!")));
  if (editable) {
    for (const [at, output] of ["", ...outputs].entries()) {
      const y = at ? Math.min(high - 10, high / 2 + 16 * at) : high / 2;
      element.append(s("g", { class: `fg-handle${output ? " other" : ""}`, transform: `translate(${WIDTH} ${y})`, dataset: { output } },
        s("title", null, output ? `Drag to a node that reads ${name}.${output}` : `Drag to a node that reads ${name}`),
        s("circle", { class: "fg-grip", r: 13 }), s("circle", { class: "fg-knob", r: 5 })));
    }
  }

  function show(row, health) {
    const said = [`${name}, ${kind}`];
    if (cardinality) said.push(`events out for each in: ${cardinality}`);
    if (live) {
      const into = row?.rate_in ?? null;
      const out = row?.rate_out ?? null;
      const rates = kind === "source" ? out !== null && `${number(out)}/s out`
        : kind === "sink" ? into !== null && `${number(into)}/s in`
          : into !== null && `${number(into)}/s → ${number(out ?? 0)}/s`;
      rate.textContent = rates || (row ? "not measured" : "not running yet");
      rate.classList.toggle("none", !rates);
      const waiting = row?.in_transit ?? null;
      queue.textContent = waiting === null ? "" : `queue ${compact(waiting)}`;
      const [look, path] = HEALTH[health] ?? [null, ""];
      word.textContent = look ? health : "";
      shape.setAttribute("d", path);
      shape.setAttribute("class", `fg-health ${look ?? ""}`);
      said.push(rates || "not measured", waiting !== null && `queue ${number(waiting)}`, health, row?.reason);
    }
    said.push(...wrong);
    const text = said.filter(Boolean).join("; ");
    title.textContent = text;
    element.setAttribute("aria-label", text);
  }

  return { element, show };
}

/** A curve through points, level at each of them. */
export function curve(points) {
  const [[x0, y0], ...rest] = points;
  let text = `M${x0} ${y0}`;
  let [x, y] = [x0, y0];
  for (const [to, at] of rest) {
    const bend = Math.max(Math.abs(to - x) / 2, 24);
    text += at === y && to > x ? `H${to}` : `C${x + bend} ${y} ${to - bend} ${at} ${to} ${at}`;
    [x, y] = [to, at];
  }
  return text;
}

/** An edge: its curve, its port where that has a name of its own, its stream and rate. The answer has `element` and `show(rate)`. */
export function line({ edge, points, flow, failures }) {
  const path = curve(points);
  const [x, y] = points.at(-1);
  const [x0, y0] = points[0];
  const [x1, y1] = points[1];
  const usual = edge.output ? `${edge.from}_${edge.output}` : edge.from;
  const stream = edge.stream?.startsWith(`${flow}.`) ? edge.stream.slice(flow.length + 1) : edge.stream;
  // Nearer to where it ends, as edges of one node begin together; but beside the name of a port.
  const t = edge.port === usual ? 0.6 : 0.4;
  const [across, down] = [x0 + t * (x1 - x0), y0 + (3 * t * t - 2 * t ** 3) * (y1 - y0)];
  const rate = s("text", { class: "fg-edge-rate", x: across, y: down + 14, "text-anchor": "middle" });
  const said = [`${edge.from}${edge.output ? `.${edge.output}` : ""} → ${edge.to}`, `port ${edge.port}`, edge.stream && `stream ${edge.stream}`, edge.static && "static: one value, repeated for each event"];
  const title = s("title", null, said.filter(Boolean).join("; "));
  const element = s("g", { class: `fg-edge${edge.static ? " static" : ""}${edge.stream ? " stored" : ""}`, dataset: { from: edge.from, to: edge.to } },
    title,
    s("path", { class: "fg-reach", d: path }),
    s("path", { class: "fg-line", d: path }),
    s("path", { class: "fg-head", d: `M${x - 7} ${y - 4}L${x} ${y}L${x - 7} ${y + 4}Z` }),
    stream && s("text", { class: "fg-stream", x: across, y: down - 6, "text-anchor": "middle" }, cut(stream, 13)),
    edge.port !== usual && s("text", { class: "fg-port", x: x - 10, y: y - 6, "text-anchor": "end" }, cut(edge.port, 12)),
    failures && s("text", { class: "fg-port", x: x0 + 8, y: y0 + 12 }, edge.output));
  element.append(rate);

  return {
    element,
    show(value) {
      rate.textContent = value === null || value === undefined ? "" : `${number(value)}/s`;
    },
  };
}

/** What is behind nodes that belong together: a shape around them and the edges between, and its title. */
export function frame({ nodes, title, runtime, edges, geometry: { high, left, middle }, layout }) {
  const pad = 10;
  const places = nodes.map((name) => layout.nodes[name]).filter(Boolean);
  if (!places.length) return null;
  const first = places.reduce((best, place) => (place.y < best.y || (place.y === best.y && place.x < best.x) ? place : best));
  return s("g", { class: `fg-frame ${runtime}` },
    s("g", { class: "fg-shade" },
      edges.map((points) => s("path", { class: "fg-bridge", d: curve(points) })),
      places.map(({ x, y }) => s("rect", { x: left(x) - pad, y: middle(y) - high / 2 - 20, width: WIDTH + 2 * pad, height: high + 20 + pad, rx: 13 }))),
    s("text", { class: "fg-frame-title", x: left(first.x), y: middle(first.y) - high / 2 - 6.5 }, cut(title, 30)));
}
