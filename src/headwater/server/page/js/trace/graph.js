// A result and its records (or a record and its results) as a graph: many on one side, one on the other.

import { h, s, fill } from "../dom.js";
import { count } from "../format.js";
import { cut } from "./shown.js";

const ROW = 30;
const FIRST = 12;
const MORE = 60;

/**
 * `bipartite({many: [{name, list: [{id, note, href, marked}], total}], one: {name, id, note}, kinds: ["source", "result"], go, light})`.
 * The one is right of its records, or with `forward` left of its results. `light(key | null)` is told what is pointed at;
 * the answer's own `light` shows what is pointed at elsewhere.
 */
export function bipartite({ many, one, kinds, forward = false, go, light }) {
  const box = h("figure", { class: "bipartite" });
  const shown = new Map(many.map((group) => [group.name, Math.min(FIRST, group.list.length)]));
  let lines = new Map();
  let width = 0;

  function draw() {
    const narrow = width < 560;
    const [side, end] = narrow ? [Math.round(width * 0.5), Math.round(width * 0.34)] : [Math.min(320, width * 0.42), Math.min(240, width * 0.32)];
    const left = forward ? width - side - 1 : 1;
    lines = new Map();
    const parts = { edges: s("g", { class: "edges" }), vertices: s("g", { class: "vertices" }) };
    let y = 6;
    const places = [];
    for (const group of many) {
      if (many.length > 1 || group.total > group.list.length) {
        parts.vertices.append(s("text", { class: "group", x: left + 2, y: y + 13 }, `${cut(group.name, 28)} · ${count(group.total)}`));
        y += 22;
      }
      for (const vertex of group.list.slice(0, shown.get(group.name))) {
        places.push([vertex, group, y]);
        y += ROW;
      }
      const hidden = group.total - shown.get(group.name);
      if (hidden > 0) {
        places.push([{ rest: hidden, loaded: group.list.length > shown.get(group.name) }, group, y]);
        y += ROW;
      }
      y += 8;
    }
    const height = Math.max(y, 64);
    const [to, centre] = [forward ? 1 : width - end - 1, Math.min(height / 2, 250)];
    const joint = forward ? end + 1 : width - end - 1;
    for (const [vertex, group, top] of places) {
      const from = forward ? left : left + side;
      const middle = (from + joint) / 2;
      const line = s("path", { class: `edge${vertex.rest ? " rest" : ""}${vertex.marked ? " marked" : ""}`, d: `M${from} ${top + 12}C${middle} ${top + 12} ${middle} ${centre} ${joint} ${centre}` });
      parts.edges.append(line);
      const made = vertex.rest ? rest(vertex, group, left, top, side) : node(vertex, kinds[0], left, top, side, go);
      parts.vertices.append(made);
      if (vertex.rest) continue;
      const key = `${group.name}/${vertex.id}`;
      lines.set(key, [line, made]);
      for (const [enter, leave] of [["pointerenter", "pointerleave"], ["focusin", "focusout"]]) {
        made.addEventListener(enter, () => point(key, true));
        made.addEventListener(leave, () => point(null, true));
      }
    }
    const centrepiece = node(one, kinds[1], to, centre - 21, end, null, 42);
    centrepiece.addEventListener("pointerenter", () => picture.classList.add("all"));
    centrepiece.addEventListener("pointerleave", () => picture.classList.remove("all"));
    parts.vertices.append(centrepiece);
    const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Graph; the table has the same" }, parts.edges, parts.vertices);
    fill(box, picture);
  }

  function rest(vertex, group, x, y, width_) {
    const words = vertex.loaded ? `${count(vertex.rest)} more: show` : `${count(vertex.rest)} more`;
    const made = s("g", { class: `vertex rest${vertex.loaded ? " opens" : ""}`, transform: `translate(${x} ${y})` },
      s("rect", { width: width_, height: 24, rx: 12 }), s("text", { x: 12, y: 16 }, words));
    if (!vertex.loaded) return made;
    made.setAttribute("tabindex", "0");
    made.setAttribute("role", "button");
    const open = () => {
      shown.set(group.name, Math.min(group.list.length, shown.get(group.name) + MORE));
      draw();
    };
    made.addEventListener("click", open);
    made.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open();
    });
    return made;
  }

  function point(key, own = false) {
    box.classList.toggle("pointed", lines.has(key));
    for (const [other, elements] of lines) for (const element of elements) element.classList.toggle("lit", other === key);
    if (own) light?.(key);
  }

  const watch = new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (!now || now === width) return;
    width = now;
    draw();
  });
  watch.observe(box);
  box.light = (key) => point(key);
  return box;
}

/** A vertex: records have round ends, results are boxes. */
function node({ name, id, note, href, marked }, kind, x, y, width, go, height = 24) {
  const room = Math.floor((width - 20) / 7.1);
  const text = height > 30 ? [
    s("text", { class: "name", x: 12, y: 17 }, cut(name, room)),
    s("text", { class: "mono", x: 12, y: 33 }, cut(id, room)),
  ] : [
    s("text", { class: "mono", x: 12, y: 16 }, cut(id, note && width > 230 ? Math.min(room, 21) : room)),
    note && width > 230 && s("text", { class: "note", x: width - 12, y: 16, "text-anchor": "end" }, cut(note, 16)),
  ];
  const whole = s("title", null, [name, id, note, marked && "marked"].filter(Boolean).join(" · "));
  const inside = [whole, s("rect", { width, height, rx: kind === "source" ? height / 2 : 4 }), marked && s("path", { class: "flag", d: `M${width - 4} ${-3}l7 7-7 7-7-7Z` }), text];
  const place = { class: `vertex ${kind}${marked ? " marked" : ""}`, transform: `translate(${x} ${y})` };
  if (!href) return s("g", place, inside);
  const follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(href);
  };
  return s("a", { ...place, href, "aria-label": `${kind === "source" ? "record" : kind} ${name ?? ""} ${id}`, onclick: follow }, inside);
}
