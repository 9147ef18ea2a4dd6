// Pictures of graphs, painted in a worker: thousands of curves would make the page stutter, a finished picture is moved
// along in no time. Without workers that can paint, it happens here.

import { EXPIRED, MARKED, RESULT, SOURCE, STEP, paint } from "./paint.js";

const KINDS = { source: SOURCE, result: RESULT, step: STEP };
const COLOURS = ["source", "result", "step", "marked", "expired", "accent", "text", "muted", "line", "panel", "line-strong"];

/** The theme's colours, as text. */
export function palette(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim() || "#888"]));
}

/** What a layout shows, as lists of numbers that can be handed over. */
export function scene(placed, vertices, colours, ratio) {
  const n = vertices.length;
  const [x, y, kinds] = [new Float32Array(n), new Float32Array(n), new Uint8Array(n)];
  const index = new Map();
  vertices.forEach((one, at) => {
    const place = placed.places.get(one.key);
    [x[at], y[at]] = [place.x, place.y];
    kinds[at] = KINDS[one.kind] | (one.expired ? EXPIRED : 0) | (one.marked ? MARKED : 0);
    index.set(one, at);
  });
  const [from, to] = [[], []];
  for (const one of vertices) {
    for (const edge of one.edges) {
      if (edge.from !== one || !index.has(edge.to)) continue;
      from.push(index.get(one));
      to.push(index.get(edge.to));
    }
  }
  return { width: placed.width, height: placed.height, ratio, radius: placed.radius, x, y, kinds, from: Uint32Array.from(from), to: Uint32Array.from(to), colours, ground: colours.panel };
}

/** Something that paints scenes: `paint(scene, tag)`; `done(picture, tag)` is told of each that was not overtaken. */
export function painter(done) {
  let number = 0;
  let worker = null;
  let asked = [];
  const here = (given) => {
    const { width, height, ratio } = given.scene;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.max(1, width * ratio), Math.max(1, height * ratio)];
    paint(canvas.getContext("2d"), given.scene);
    done(canvas, given.tag);
  };
  if (typeof OffscreenCanvas !== "undefined" && typeof Worker !== "undefined") {
    try {
      worker = new Worker(new URL("./painter.js", import.meta.url), { type: "module" });
      worker.onmessage = ({ data }) => {
        const mine = asked.find((one) => one.scene.number === data.number);
        asked = asked.filter((one) => one.scene.number > data.number);
        if (mine) done(data.picture, mine.tag);
        else data.picture.close();
      };
      worker.onerror = () => {
        worker = null;
        if (asked.length) here(asked.at(-1));
      };
    } catch {
      worker = null;
    }
  }
  return {
    paint(given, tag) {
      number += 1;
      const mine = { scene: { ...given, number }, tag };
      if (!worker) return here(mine);
      asked.push(mine);
      worker.postMessage(mine.scene);
    },
    end: () => worker?.terminate(),
  };
}
