// The flow file as text, with the number of each line, and marks at those where something is wrong.

import { fill, h } from "../dom.js";

/** `typed(text)` is called for what is typed. */
export function editor(typed) {
  const gutter = h("div", { class: "gutter", "aria-hidden": "true" });
  const area = h("textarea", { class: "source", wrap: "off", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "The flow file, YAML", "aria-describedby": "editor-help" });
  const element = h("div", { class: "editor" }, gutter, area);
  let wrong = new Map();
  let lines = 0;

  function number() {
    const now = area.value.split("\n").length;
    if (now !== lines || gutter.dataset.wrong !== String([...wrong.keys()])) {
      lines = now;
      gutter.dataset.wrong = String([...wrong.keys()]);
      fill(gutter, Array.from({ length: lines }, (_, at) => h("div", { class: wrong.has(at + 1) ? "wrong" : null, title: wrong.get(at + 1) }, at + 1)));
    }
    gutter.scrollTop = area.scrollTop;
  }

  area.addEventListener("input", () => {
    number();
    typed(area.value);
  });
  area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
  // Two spaces for a new line's place: as deep as the line before.
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey) return;
    const before = area.value.slice(0, area.selectionStart).split("\n").at(-1);
    const deep = /^\s*/.exec(before)[0] + (/:\s*$/.test(before) ? "  " : "");
    if (!deep) return;
    event.preventDefault();
    area.setRangeText(`\n${deep}`, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  });

  return {
    element,
    /** The text as it is elsewhere; where one is typing, the cursor stays. */
    show(text) {
      if (area.value === text) return;
      const { selectionStart, selectionEnd, scrollTop } = area;
      area.value = text;
      if (document.activeElement === area) area.setSelectionRange(selectionStart, selectionEnd);
      area.scrollTop = scrollTop;
      number();
    },
    violations(list) {
      wrong = new Map();
      for (const one of list) if (one.line) wrong.set(one.line, [wrong.get(one.line), one.text].filter(Boolean).join("\n"));
      number();
    },
    /** To a line, the first being 1. */
    go(line) {
      const before = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
      const end = area.value.indexOf("\n", before);
      area.focus();
      area.setSelectionRange(before, end < 0 ? area.value.length : end);
      area.scrollTop = Math.max(0, (line - 4) * 19);
    },
  };
}
