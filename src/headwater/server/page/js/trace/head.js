// What stands above every traced thing: its name, the way back, a link to copy, exports.

import { h } from "../dom.js";
import { address, token } from "../api.js";
import { icon } from "../parts/icons.js";

const FORMATS = [["prov-json", "PROV-JSON"], ["prov-n", "PROV-N"], ["dot", "DOT (Graphviz)"], ["graphml", "GraphML"], ["openlineage", "OpenLineage"]];

export function head(app, { back, title, lead, about, more }) {
  return h("header", { class: "page-head" },
    h("div", { class: "titles" },
      back && h("a", { class: "back", href: back[0] }, h("span", { "aria-hidden": "true" }, "← "), back[1]),
      h("h1", null, title)),
    h("div", { class: "end" }, more, about && exports(app, about), copying(app)),
    lead && h("div", { class: "lead" }, lead));
}

export const copying = (app) => h("button", { class: "button", type: "button", onclick: () => app.copy(location.href) }, icon("link"), "Copy link");

/** A menu of downloads. */
function exports(app, about) {
  const menu = h("details", { class: "menu" },
    h("summary", { class: "button" }, "Export", icon("down", 12)),
    h("ul", null, FORMATS.map(([format, words]) =>
      h("li", null, h("a", { href: address("/export", { format, ...about }), download: true, onclick: (event) => download(event, app) }, words)))));
  menu.addEventListener("focusout", (event) => { if (!menu.contains(event.relatedTarget)) menu.open = false; });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  return menu;
}

/** A plain link can't carry the token: with one, the file is fetched first. */
async function download(event, app) {
  if (!token()) return;
  event.preventDefault();
  const link = event.currentTarget;
  try {
    const answer = await fetch(link.href, { headers: { authorization: `Bearer ${token()}` } });
    if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.error ?? `the service answered ${answer.status}`);
    const file = URL.createObjectURL(await answer.blob());
    const name = /filename="?([^";]+)/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "headwater-export";
    h("a", { href: file, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(file), 10_000);
  } catch (error) {
    app.toast(error.message, "error");
  }
}
