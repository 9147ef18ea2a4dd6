// Dialogs that keep the focus: questions before something is done, and forms.

import { h } from "../dom.js";

/**
 * Ask something: a promise of what `answer()` gives, or null if it is closed without.
 * `open({title, body, action: "Remove", danger, answer: () => value | null (stay open)})`.
 */
export function open({ title, body, action = "OK", cancel = "Cancel", danger = false, wide = false, answer = () => true }) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let given = null;
    const go = h("button", { class: `button primary${danger ? " danger" : ""}`, type: "submit" }, action);
    const box = h("dialog", { class: `dialog${wide ? " wide" : ""}`, "aria-label": title },
      h("form", { onsubmit: submit },
        h("h2", null, title), body,
        h("div", { class: "buttons" }, h("button", { class: "button", type: "button", onclick: () => box.close() }, cancel), go)));

    async function submit(event) {
      event.preventDefault();
      go.disabled = true;
      try {
        given = await answer();
      } finally {
        go.disabled = false;
      }
      if (given !== null && given !== undefined) box.close();
    }

    box.addEventListener("close", () => {
      box.remove();
      before?.focus?.();
      resolve(given);
    });
    // A click beside it closes it.
    box.addEventListener("mousedown", (event) => event.target === box && box.close());
    document.body.append(box);
    box.showModal();
  });
}

/** Ask before something that can't be taken back: a promise of true or false. */
export async function confirm({ title, text, action, danger = true }) {
  return (await open({ title, body: h("p", null, text), action, danger })) === true;
}
