// Connecting nodes by dragging: from a box's handle to the box that is to read it.

import { s } from "../dom.js";
import { curve } from "./flowdrawing.js";

/** Let handles of a drawing be dragged; the answer ends it. */
export function dragging(svg, { enabled, nodeAt, mark, connect }) {
  let drag = null;

  const inside = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [point.x, point.y];
  };

  function begin(event) {
    const handle = event.target.closest?.(".fg-handle");
    if (!handle || !enabled() || event.button) return;
    event.preventDefault();
    const node = handle.closest("[data-node]");
    const box = handle.getBoundingClientRect();
    const start = inside({ clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 });
    const path = s("path", { class: "fg-dragged" });
    svg.append(path);
    svg.classList.add("dragging");
    drag = { from: node.dataset.node, output: handle.dataset.output || null, start, path };
  }

  function move(event) {
    if (!drag) return;
    drag.path.setAttribute("d", curve([drag.start, inside(event)]));
    const to = nodeAt(event.clientX, event.clientY);
    drag.to = to && to !== drag.from ? to : null;
    mark(drag.to);
  }

  function end(event) {
    if (!drag) return;
    move(event);
    const { from, output, to } = drag;
    stop();
    // What ends a drag is no click as well.
    const swallow = (click) => click.stopPropagation();
    window.addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => window.removeEventListener("click", swallow, true), 0);
    if (to) connect({ from, output, to });
  }

  function stop() {
    drag?.path.remove();
    drag = null;
    mark(null);
    svg.classList.remove("dragging");
  }

  const escape = (event) => event.key === "Escape" && stop();
  svg.addEventListener("pointerdown", begin);
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", stop);
  window.addEventListener("keydown", escape);
  return () => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", stop);
    window.removeEventListener("keydown", escape);
  };
}
