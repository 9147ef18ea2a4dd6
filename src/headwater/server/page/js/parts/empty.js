// What stands where nothing is: what to do next, or what went wrong.

import { h } from "../dom.js";
import { icon } from "./icons.js";
import { copy } from "./table.js";

/** Nothing there yet: `empty({title, text, command: "headwater …", action: {text, href} | {text, onclick} | element})`. */
export function empty({ title, text, command, action }) {
  return h("div", { class: "empty" },
    h("h2", null, title),
    text && h("p", null, text),
    command && h("div", { class: "command" }, h("code", null, command),
      h("button", { class: "button quiet icon small", type: "button", title: "Copy", "aria-label": `Copy ${command}`, onclick: () => copy(command) }, icon("copy"))),
    [action].flat().filter(Boolean).map(offered));
}

function offered(action) {
  if (action instanceof Node) return action;
  const { text, ...given } = action;
  return h(given.href ? "a" : "button", { class: "button", type: given.href ? null : "button", ...given }, text);
}

/** Something went wrong: the server's words, a way to try again, and where to give the token if that is what it needs. */
export function failure(error, retry) {
  const needs = error?.status === 401;
  return h("div", { class: "empty failed", role: "alert" },
    h("h2", null, needs ? "A token is needed" : "That did not work"),
    h("p", null, error?.message ?? String(error)),
    violations(error),
    h("div", { class: "buttons" },
      needs && h("button", { class: "button primary", type: "button", onclick: () => document.dispatchEvent(new CustomEvent("headwater-token")) }, "Enter the token"),
      retry && h("button", { class: "button", type: "button", onclick: retry }, "Try again")));
}

/** The rules that something breaks, as a list; null if the error names none. */
export function violations(error) {
  const list = error?.told?.violations ?? [];
  if (!list.length) return null;
  return h("ul", { class: "violations" }, list.map((one) => h("li", { class: "note bad" }, h("span", { class: "dot bad" }),
    h("span", null, typeof one === "string" ? one : [one.line && `line ${one.line}`, one.node, one.text].filter(Boolean).join(": ")))));
}

export const loading = (text = "Loading…") => h("p", { class: "loading", role: "status" }, text);
