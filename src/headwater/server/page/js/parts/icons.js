// A few small pictures, drawn with the text's colour.

import { s } from "../dom.js";

const PATHS = {
  copy: "M6 6V3.5A1.5 1.5 0 0 1 7.5 2h5A1.5 1.5 0 0 1 14 3.5v5a1.5 1.5 0 0 1-1.5 1.5H10M3.5 6h5A1.5 1.5 0 0 1 10 7.5v5A1.5 1.5 0 0 1 8.5 14h-5A1.5 1.5 0 0 1 2 12.5v-5A1.5 1.5 0 0 1 3.5 6Z",
  close: "M4 4l8 8M12 4l-8 8",
  key: "M10.5 2.5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8.3 7.7 2.5 13.5M4.5 11.5l1.8 1.8",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13",
  moon: "M13.2 9.8A5.7 5.7 0 0 1 6.2 2.8a5.7 5.7 0 1 0 7 7Z",
  half: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 2v12M8 5l4.6-1M8 8h6M8 11l4.6 1",
  right: "M6 3l5 5-5 5",
  down: "M3 6l5 5 5-5",
  plus: "M8 3v10M3 8h10",
  play: "M5 3l8 5-8 5V3Z",
  pause: "M5.5 3v10M10.5 3v10",
  stop: "M4 4h8v8H4V4Z",
  undo: "M5.5 3 2.5 6l3 3M2.5 6h7a4 4 0 0 1 0 8H6",
  link: "M6.5 9.5l3-3M7 4.5l1.3-1.3a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.3 1.3a3.2 3.2 0 0 1-4.5-4.5L4.5 7",
};

/** An icon of 16 by 16, without a name of its own: what it stands in has to have one. */
export function icon(name, size = 14) {
  return s("svg", { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" },
    s("path", { d: PATHS[name] ?? "" }));
}
