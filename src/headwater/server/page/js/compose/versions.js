// The versions of a deployed flow: what each changed, its text, and the way back to it.

import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { time } from "../format.js";
import { open } from "../parts/dialog.js";
import { changes } from "./changes.js";

// Seconds since 1970, or a text.
const when = (at) => time(typeof at === "number" ? new Date(1000 * at).toISOString() : at);

/** Show the versions of a flow; a promise of the text that is to be taken up again, or null. */
export async function askVersion(flow) {
  const told = await api.get(`/flows/${api.part(flow)}`);
  const versions = [...told.versions].sort((a, b) => b.version - a.version);
  const view = h("div", { class: "version-text" });
  const list = h("div", { class: "version-list", role: "listbox", "aria-label": "Versions", tabindex: 0 });
  let chosen = null;
  let text = null;

  async function show(version) {
    chosen = version.version;
    for (const one of list.children) one.setAttribute("aria-selected", String(one.dataset.version === String(chosen)));
    list.setAttribute("aria-activedescendant", `version-${chosen}`);
    fill(view, h("p", { class: "loading" }, "Loading…"));
    try {
      const found = await api.get(`/flows/${api.part(flow)}/versions/${version.version}`);
      if (chosen !== version.version) return;
      text = found.text;
      fill(view, changes(found.difference) ?? h("p", { class: "muted" }, version.version === 1 ? "The first version." : "Nothing was different from the version before."), h("pre", { class: "code" }, found.text));
    } catch (error) {
      fill(view, h("p", { class: "note bad" }, error.message));
    }
  }

  fill(list, versions.map((version) => h("div", { role: "option", id: `version-${version.version}`, class: "version", dataset: { version: version.version }, onclick: () => show(version) },
    h("strong", null, `Version ${version.version}`), version.current && h("span", { class: "badge good" }, "runs"),
    h("span", { class: "muted" }, [version.action, when(version.at)].filter(Boolean).join(", ")))));
  list.addEventListener("keydown", (event) => {
    const at = versions.findIndex((version) => version.version === chosen);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: versions.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(versions[Math.max(0, Math.min(to, versions.length - 1))]);
  });
  show(versions.find((version) => version.current) ?? versions[0]);

  return open({
    title: `Versions of ${flow}`,
    action: "Edit this text",
    cancel: "Close",
    wide: true,
    body: h("div", { class: "versions" }, list, view),
    answer: () => text,
  });
}
