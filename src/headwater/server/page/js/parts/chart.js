// A chart of lines over time: axes that can be read, a value under the pointer, and the same in words.

import { h, s, fill } from "../dom.js";
import { hour, number } from "../format.js";

const LEFT = 44;
const BOTTOM = 20;
const TOP = 8;

/**
 * `lineChart({label, height, unit})` -> `{element, update({values, start, every, levels: [{value, name, kind}]})}`.
 * `start` is in seconds since 1970; levels are horizontal lines, such as what is expected.
 */
export function lineChart({ label, height = 150, unit = "" }) {
  const svg = s("svg", { class: "chart", role: "img", height });
  const under = h("output", { class: "under" });
  const element = h("figure", { class: "chart-box" }, svg, under);
  let given = { values: [], start: 0, every: 1, levels: [] };
  let width = 0;

  function update(now) {
    given = now;
    draw();
  }

  /** The scale's end. A peak that is over does not press all else to the ground: it is cut, and said. */
  function top() {
    const known = given.values.filter(Number.isFinite);
    const levels = given.levels.filter((level) => level.holds !== false).map((level) => level.value);
    const usual = known.slice().sort((a, b) => a - b)[Math.floor(0.95 * (known.length - 1))] ?? 0;
    const lately = known.slice(-Math.ceil(known.length / 3));
    const shown = Math.max(1, 1.2 * usual, ...lately, ...levels);
    const most = Math.max(1, ...known, ...levels);
    return nice(most > 4 * shown ? shown : most);
  }

  const x = (at) => LEFT + (at / Math.max(1, given.values.length - 1)) * (width - LEFT - 8);
  const y = (value, most) => TOP + (1 - Math.min(value, most) / most) * (height - TOP - BOTTOM);

  function draw() {
    if (!width) return;
    const { values, start, every, levels } = given;
    const most = top();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const known = values.map((value, at) => [value, at]).filter(([value]) => Number.isFinite(value));
    const points = known.map(([value, at]) => `${x(at).toFixed(1)} ${y(value, most).toFixed(1)}`);
    const told = known.length ? `${label}: now ${number(known.at(-1)[0])}, at most ${number(Math.max(...known.map(([value]) => value)))}${levels.map((level) => `, ${level.name} ${number(level.value)}`).join("")}` : `${label}: nothing measured yet`;
    svg.setAttribute("aria-label", told);
    const peak = known.reduce((best, one) => (one[0] > best[0] ? one : best), [0, 0]);
    fill(svg,
      [0, most / 2, most].map((value) => [
        s("line", { class: "grid", x1: LEFT, x2: width - 8, y1: y(value, most), y2: y(value, most) }),
        s("text", { x: LEFT - 8, y: y(value, most) + 4, "text-anchor": "end" }, number(value))]),
      ticks(values.length).map((at) => s("text", { x: x(at), y: height - 4, "text-anchor": at === 0 ? "start" : at === values.length - 1 ? "end" : "middle" }, clock(start + at * every))),
      levels.filter((level) => level.value <= most).map((level) => s("line", { class: `level ${level.kind}`, x1: LEFT, x2: width - 8, y1: y(level.value, most), y2: y(level.value, most) })),
      points.length > 1 && [s("path", { class: "area", d: `M${points.join("L")}L${x(known.at(-1)[1]).toFixed(1)} ${y(0, most)}L${x(known[0][1]).toFixed(1)} ${y(0, most)}Z` }), s("path", { class: "line", d: `M${points.join("L")}` })],
      peak[0] > most && s("text", { class: "peak", x: Math.min(x(peak[1]) + 6, width - 90), y: TOP + 12 }, `↑ up to ${number(peak[0])}`));
  }

  const ticks = (n) => (n < 2 ? [] : width < 420 ? [0, n - 1] : [0, Math.floor((n - 1) / 2), n - 1]);
  const clock = (seconds) => hour(new Date(1000 * Math.round(seconds)).toISOString());

  svg.addEventListener("pointermove", (event) => {
    const { values, start, every } = given;
    const at = Math.round(((event.offsetX - LEFT) / (width - LEFT - 8)) * (values.length - 1));
    const value = values[Math.max(0, Math.min(at, values.length - 1))];
    if (!Number.isFinite(value)) return;
    under.textContent = `${clock(start + at * every)}: ${number(value)}${unit}`;
  });
  svg.addEventListener("pointerleave", () => (under.textContent = ""));

  const watch = new ResizeObserver(([entry]) => {
    width = Math.round(entry.contentRect.width);
    draw();
  });
  watch.observe(element);
  return { element, update, end: () => watch.disconnect() };
}

/** The next round number. */
function nice(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].map((step) => step * size).find((step) => step >= value);
}
