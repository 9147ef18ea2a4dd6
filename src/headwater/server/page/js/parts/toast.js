// Short messages in a corner. What went wrong stays until it is closed, the rest goes by itself.

import { h } from "../dom.js";
import { icon } from "./icons.js";

const MOST = 4;
const SHAPES = { info: "info", error: "bad", done: "good" };

export function toast(text, kind = "info") {
  const room = document.getElementById("toasts");
  const same = [...room.children].find((one) => one.dataset.text === text);
  same?.remove();
  const close = h("button", { class: "button quiet icon small", type: "button", "aria-label": "Close", onclick: () => shown.remove() }, icon("close", 12));
  const shown = h("div", { class: "toast", role: kind === "error" ? "alert" : null, dataset: { text } }, h("span", { class: `dot ${SHAPES[kind] ?? "info"}` }), h("p", null, text), close);
  room.append(shown);
  while (room.children.length > MOST) room.firstElementChild.remove();
  // Time enough to read it.
  if (kind !== "error") setTimeout(() => shown.remove(), 2500 + 40 * text.length);
}
