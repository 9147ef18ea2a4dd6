// States and verdicts in words, with the shape and colour that belong to them.

import { h } from "../dom.js";

const VERDICTS = {
  growing: ["bad", "growing", 0],
  bursting: ["warn", "bursting", 1],
  unknown: ["none", "not known yet", 2],
  healthy: ["good", "healthy", 3],
};
const STATES = {
  running: "good", live: "good", failed: "bad", unreachable: "bad", retrying: "warn", stopped: "none", idle: "none",
  changing: "info", starting: "info", stopping: "info", removing: "info", "building up": "info",
};

export const verdictKind = (verdict) => VERDICTS[verdict]?.[0] ?? "none";
/** Worst first. */
export const trouble = (verdict) => VERDICTS[verdict]?.[2] ?? 4;
export const dot = (kind) => h("span", { class: `dot ${kind}`, "aria-hidden": "true" });
export const badge = (kind, ...words) => h("span", { class: `badge ${kind}` }, dot(kind), words);
export const verdictBadge = (verdict) => badge(verdictKind(verdict), VERDICTS[verdict]?.[1] ?? "not measured");
export const stateBadge = (state) => badge(STATES[state] ?? "none", state ?? "unknown");
export const note = (kind, ...words) => h("p", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null }, dot(kind), h("span", null, words));

/** The state of a flow of its units' states: the worst that one of them is in. */
export function stateOf(status, listed) {
  // What is being done goes before how it is.
  const doing = status ? status.doing : listed?.doing;
  if (doing) return doing in STATES ? doing : "changing";
  if ((status ?? listed)?.wanted === "stopped") return "stopped";
  const states = new Set((status?.units ?? []).map((unit) => unit.state));
  for (const state of ["failed", "retrying", "building up"]) if (states.has(state)) return state;
  return status?.state ?? listed?.state ?? status?.wanted ?? "unknown";
}
