// A line of numbers in the room of a word.

import { s } from "../dom.js";
import { number } from "../format.js";

/** An SVG of values, oldest first: `sparkline(rates, {width: 96, height: 24, label: "events per second"})`. */
export function sparkline(values, { width = 96, height = 24, label = "values", most = null } = {}) {
  const known = values.map((value) => (Number.isFinite(value) ? value : 0));
  const top = Math.max(most ?? 0, ...known) || 1;
  const step = known.length > 1 ? width / (known.length - 1) : 0;
  // Half a stroke of room, so that neither zero nor the top is cut.
  const points = known.map((value, at) => [at * step, height - 1 - (value / top) * (height - 2)].map((one) => one.toFixed(1)));
  const line = `M${points.map((point) => point.join(" ")).join("L")}`;
  const last = known.at(-1);
  const told = known.length ? `${label}: now ${number(last)}, at most ${number(Math.max(...known))}` : `${label}: none`;
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, preserveAspectRatio: "none", role: "img", "aria-label": told },
    s("title", null, told),
    known.length > 1 && s("path", { class: "area", d: `${line}L${width} ${height}L0 ${height}Z` }),
    known.length > 1 && s("path", { class: "line", d: line }));
}
