// Time travel: a slider over the watermarks of a flow's batches, with how many results each gave.

import { h, s, calmly } from "../dom.js";
import { get } from "../api.js";
import { many, time } from "../format.js";
import { icon } from "../parts/icons.js";

/** The bar; `went(watermark | null)` is told where to: null is now. */
export function scrub({ went }) {
  const bars = s("svg", { class: "bars", preserveAspectRatio: "none", viewBox: "0 0 100 20", "aria-hidden": "true" });
  const slider = h("input", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": "Watermark" });
  const said = h("output", { class: "number" });
  const back = h("button", { class: "button icon small", type: "button", title: "One batch back", "aria-label": "One batch back" }, "‹");
  const on = h("button", { class: "button icon small", type: "button", title: "One batch on", "aria-label": "One batch on" }, "›");
  const now = h("button", { class: "button small", type: "button" }, icon("play", 11), "Now");
  const bar = h("div", { class: "scrub", hidden: true }, back, h("div", { class: "track", title: "The batches so far; a bar is as high as its results are many" }, bars, slider), on, said, now);
  let list = [];
  let at = null;
  const tell = calmly(90, (mark) => went(mark));

  const last = () => list.length - 1;
  const place = () => (at === null ? last() : Math.max(0, list.findLastIndex((one) => one.watermark <= at)));

  function update() {
    bar.hidden = list.length < 2;
    slider.max = Math.max(0, last());
    slider.value = place();
    const one = list[place()];
    const words = one ? `${time(one.watermark)} · batch ${one.batch}, ${many(one.results, "result")}` : "";
    said.textContent = one ? time(one.watermark) : "";
    slider.setAttribute("aria-valuetext", at === null ? `now: ${words}` : words);
    bar.classList.toggle("past", at !== null);
    now.setAttribute("aria-pressed", String(at === null));
    back.disabled = place() <= 0;
    on.disabled = at === null;
  }

  function go(to) {
    const next = to >= last() ? null : list[Math.max(0, to)].watermark;
    at = next;
    update();
    tell(next);
  }
  slider.addEventListener("input", () => go(Number(slider.value)));
  back.addEventListener("click", () => go(place() - 1));
  on.addEventListener("click", () => go(place() + 1));
  now.addEventListener("click", () => go(last()));

  function draw() {
    // One batch with very many, as when a flow catches up, does not flatten the others.
    const most = Math.max(1, list.map((one) => one.results).sort((a, b) => a - b)[Math.floor((list.length - 1) * 0.9)] ?? 1);
    const width = 100 / Math.max(1, list.length);
    bars.replaceChildren(s("path", { d: list.map((one, n) => `M${(n * width).toFixed(2)} 20v${(-20 * Math.min(1, one.results / most)).toFixed(1)}h${(width * 0.8).toFixed(2)}V20Z`).join("") }));
  }

  return {
    bar,
    set: (mark) => { at = mark; update(); },
    async load(flow, options) {
      const told = await get("/graph/watermarks", { flow, limit: 500 }, options);
      list = [];
      // Of batches with the same watermark only the last stands: there is no telling them apart by it.
      for (const one of told.watermarks.filter((each) => each.watermark)) {
        if (list.at(-1)?.watermark === one.watermark) list[list.length - 1] = { ...one, results: one.results + list.at(-1).results };
        else list.push(one);
      }
      draw();
      update();
    },
    add({ batch, watermark, vertices }) {
      if (!watermark || (list.at(-1)?.watermark ?? "") >= watermark) return;
      list.push({ batch, watermark, results: vertices.filter((one) => one.kind === "result").length });
      if (list.length > 600) list = list.filter((_, n) => n % 2 === list.length % 2 || n > 580);
      draw();
      update();
    },
    end: () => tell.cancel(),
  };
}
