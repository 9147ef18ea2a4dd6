// Watermark clocks: up to when each unit has seen all it will, and how far that is behind what came last.

import { h, s, fill } from "../../dom.js";
import { hour, seconds, time } from "../../format.js";

/** A list of clocks, one for each unit that has a watermark: `{element, update(status, newest)}`. */
export function clocks() {
  const list = h("ul", { class: "clocks" });
  const element = h("div", { class: "watermarks", hidden: true }, h("h3", null, "Watermarks"), list);
  const shown = new Map();

  function update(status, newest) {
    const rows = slowest(status?.watermarks ?? []);
    element.hidden = !rows.length;
    const keys = rows.map((row) => row.unit);
    for (const [key, one] of shown) {
      if (keys.includes(key)) continue;
      one.element.remove();
      shown.delete(key);
    }
    rows.forEach((row, at) => {
      if (!shown.has(keys[at])) shown.set(keys[at], clock());
      const one = shown.get(keys[at]);
      one.update(row, latest(status, row.unit, newest), status.at);
      if (list.children[at] !== one.element) list.insertBefore(one.element, list.children[at] ?? null);
    });
  }

  return { element, update };
}

/** Of each unit the watermark that is furthest behind. */
function slowest(watermarks) {
  const found = new Map();
  for (const row of watermarks) {
    const before = found.get(row.unit);
    if (!before || !row.watermark || (before.watermark && row.watermark < before.watermark)) found.set(row.unit, row);
  }
  return [...found.values()];
}

/** The newest event time of the streams that a unit reads. */
function latest(status, id, newest) {
  const unit = status.units.find((one) => one.id === id);
  return (unit?.inputs ?? []).map((input) => newest.get(input.stream)).filter(Boolean).sort().at(-1) ?? null;
}

function clock() {
  const hands = ["hour", "minute"].map((name) => s("line", { class: name, x1: 16, y1: 16, x2: 16, y2: name === "hour" ? 9.5 : 6 }));
  const face = s("svg", { viewBox: "0 0 32 32", width: 32, height: 32, "aria-hidden": "true" }, s("circle", { cx: 16, cy: 16, r: 13.5 }), hands);
  const name = h("span", { class: "of" });
  const at = h("strong", { class: "number" });
  const behind = h("span", { class: "muted" });
  const element = h("li", { class: "clock" }, face, h("div", null, name, at, behind));

  function update(row, newest, now) {
    name.textContent = row.unit.replace(/@(\d+)$/, "");
    name.title = `unit ${row.unit}`;
    element.classList.toggle("none", !row.watermark);
    if (!row.watermark) {
      at.textContent = "no watermark yet";
      behind.textContent = "it comes with the first events";
      return;
    }
    const moment = new Date(row.watermark);
    at.textContent = hour(row.watermark.replace(/\.\d+/, ""));
    element.title = `${time(row.watermark)}; ${row.watermark}`;
    const minutes = moment.getHours() * 60 + moment.getMinutes();
    hands[0].setAttribute("transform", `rotate(${minutes / 2} 16 16)`);
    hands[1].setAttribute("transform", `rotate(${(minutes % 60) * 6} 16 16)`);
    const old = 1000 * now - moment > 86_400_000;
    const words = newest ? `${seconds(whole(Math.max(0, (new Date(newest) - moment) / 1000)))} behind the newest event` : `${seconds(whole(Math.max(0, now - moment / 1000)))} behind now`;
    fill(behind, old && `${time(row.watermark).split(",")[0]} · `, words);
  }

  return { element, update };
}

const whole = (value) => (value >= 10 ? Math.round(value) : value);
