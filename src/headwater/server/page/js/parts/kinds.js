// The kinds of nodes as pictures: one for each, in the colour of what it does.

import { s } from "../dom.js";

const PATHS = {
  source: "M3 3v10M6 8h7M10 5l3 3-3 3",
  sink: "M13 3v10M3 8h7M7 5l3 3-3 3",
  static: "M8 2.8 13.2 8 8 13.2 2.8 8Z",
  filter: "M2.5 3h11L9.5 8v5l-3-1.5V8Z",
  map: "M3 3h4v10H3ZM9.5 5.5h4M9.5 8h4M9.5 10.5h4",
  function: "M11.5 3.2C9 2.4 8.4 4 8 6.5l-.8 4C6.8 12.6 6 13.6 4 12.9M5 7h6",
  service: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM2.5 8h11M8 2.5c2.8 3 2.8 8 0 11M8 2.5c-2.8 3-2.8 8 0 11",
  aggregate: "M12 3H4l4.5 5L4 13h8",
  merge: "M2.5 3.5c5 0 3 4.5 8 4.5M2.5 12.5c5 0 3-4.5 8-4.5M10.5 5.5 13 8l-2.5 2.5",
  join: "M6 4.2a3.8 3.8 0 1 0 0 7.6 3.8 3.8 0 0 0 0-7.6ZM10 4.2a3.8 3.8 0 1 0 0 7.6 3.8 3.8 0 0 0 0-7.6Z",
  match: "M3.5 12.5h.01M9.5 3.5v7M6.5 5.25l6 3.5M12.5 5.25l-6 3.5",
  sql: "M3 4.5c0-1.5 10-1.5 10 0v7c0 1.5-10 1.5-10 0ZM3 4.5c0 1.5 10 1.5 10 0M3 8c0 1.5 10 1.5 10 0",
  job: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3.2l2.2 1.6",
};

const FAMILIES = { source: "in", sink: "out", static: "once", function: "work", service: "work", job: "work" };

/** What a kind does, for its colour: "in", "out", "once", "work" or "operator". */
export const family = (kind) => (Object.hasOwn(FAMILIES, kind) ? FAMILIES[kind] : "operator");

/** The picture of a kind, drawn with the text's colour. */
export function kindIcon(kind, size = 16) {
  return s("svg", { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" }, kindPath(kind));
}

/** The same as a path of 16 by 16, to stand in a larger drawing. */
export function kindPath(kind) {
  return s("path", {
    d: (Object.hasOwn(PATHS, kind) && PATHS[kind]) || "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Z",
    fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round",
  });
}
