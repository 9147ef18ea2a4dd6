// Values of records and results, shown harmlessly: isolated from the text around them, signs that hide or turn text made
// visible, long ones cut until somebody asks for all of it.

import { h, fill } from "../dom.js";
import { count, value } from "../format.js";
import { failure } from "../parts/empty.js";
import { isId } from "../parts/table.js";

// Controls but tab and newline, marks of zero width, and what changes the direction of text. Joiners stay: scripts need them.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;

/** A text in which nothing hides. */
export const visible = (text) => String(text).replace(HIDDEN, (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** A value as one line of visible text. */
export const line = (given) => visible(value(given));

/** A text cut to a number of signs, with … where something is missing. */
export function cut(text, most) {
  const signs = [...visible(text)];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : signs.join("");
}

/** A value in a cell: null is told apart from an empty text. */
export function cellOf(given) {
  if (given === null || given === undefined) return null;
  if (given === "") return h("span", { class: "muted" }, "empty text");
  return h("bdi", null, line(given));
}

/** A value in full, or its first signs and a button for the rest. */
export function whole(given, most = 400) {
  if (given === null || given === undefined) return h("span", { class: "muted" }, "null");
  if (given === "") return h("span", { class: "muted" }, "empty text");
  const text = line(given);
  if (text.length <= most) return h("bdi", { class: "value" }, text);
  const box = h("span");
  const show = (all) => {
    fill(box, h("bdi", { class: "value" }, all ? text : cut(text, most)), " ",
      h("button", { class: "button quiet small", type: "button", "aria-expanded": String(all), onclick: () => show(!all) },
        all ? "Show less" : `Show all ${count(text.length)} characters`));
  };
  show(false);
  return box;
}

/** Names and values below each other; those of `without` are left out. */
export function facts(row, without = []) {
  const own = Object.entries(row).filter(([name]) => !without.includes(name));
  if (!own.length) return h("p", { class: "muted" }, "It has no columns of its own.");
  return h("dl", { class: "facts values" }, own.map(([name, given]) => [h("dt", null, h("bdi", null, visible(name))), h("dd", null, whole(given))]));
}

/** The columns of an answer for a table, harmless ones; `only` chooses and orders them, `more` overrides by name. */
export function columns(given, { only, more = {} } = {}) {
  const chosen = only ? only.map((name) => given.find((one) => one.name === name)).filter(Boolean) : given;
  return chosen.map((one) => ({ ...one, label: cut(one.name, 40), show: isId(one.name) ? undefined : cellOf, ...more[one.name] }));
}

/** Something that takes seconds, with a clock and a way to stop waiting. */
export function waiting(text, stop) {
  const started = Date.now();
  const clock = h("span", { class: "number muted", "aria-hidden": "true" }, "0 s");
  const timer = setInterval(() => {
    if (!clock.isConnected && Date.now() - started > 1000) clearInterval(timer);
    clock.textContent = `${Math.round((Date.now() - started) / 1000)} s`;
  }, 500);
  return h("div", { class: "waiting" }, h("span", { class: "loading", role: "status" }, text), clock,
    stop && h("button", { class: "button small", type: "button", onclick: stop }, "Stop waiting"));
}

/**
 * Asks for something that takes seconds, as often as the button is pressed: `ask(signal)` gives what `place` shows.
 * Gives the function that asks at once.
 */
export function asking({ button, place, words, ask, started, signal }) {
  async function run() {
    started();
    const ending = new AbortController();
    const stop = () => ending.abort();
    signal.addEventListener("abort", stop);
    button.disabled = true;
    fill(place, waiting(words, stop));
    try {
      fill(place, await ask(ending.signal));
    } catch (error) {
      fill(place, error.name === "AbortError" ? h("p", { class: "muted" }, "Stopped waiting; the service may still finish it.") : failure(error, run));
    } finally {
      button.disabled = false;
      signal.removeEventListener("abort", stop);
    }
  }
  button.addEventListener("click", run);
  return run;
}
