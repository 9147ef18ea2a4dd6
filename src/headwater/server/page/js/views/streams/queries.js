// Queries registered over streams: SQL that goes on running, whose results are a stream of their own.

import { h, fill } from "../../dom.js";
import * as api from "../../api.js";
import { count, rate } from "../../format.js";
import { confirm } from "../../parts/dialog.js";
import { empty, failure, loading, violations } from "../../parts/empty.js";
import { note, stateBadge } from "../../parts/health.js";
import { icon } from "../../parts/icons.js";
import { table } from "../../parts/table.js";
import { liveEvents } from "./events.js";

const EVERY = 5_000;

/** The section: `{element, streams(list), end()}`; `streams` tells of those that there are. */
export function queries(params, app) {
  const room = h("div", null, loading());
  const heard = h("div", { class: "heard" });
  const register = form(app, () => look());
  const add = h("button", { class: "button", type: "button", "aria-expanded": "false", onclick: () => show(register.element.hidden) }, icon("plus"), "Register a query");
  const element = h("section", { class: "queries", id: "queries", "aria-label": "Queries" },
    h("div", { class: "page-head" }, h("h2", null, "Queries"), h("div", { class: "end" }, add),
      h("p", { class: "lead" }, "SQL over streams that goes on running. What it finds is a stream, with provenance like any other.")),
    register.element, room, heard);

  let made = null;
  let live = null;
  let listening = null;
  let over = false;

  function show(wanted) {
    register.element.hidden = !wanted;
    add.setAttribute("aria-expanded", String(wanted));
    if (wanted) register.focus();
  }

  async function look() {
    try {
      const told = await api.get("/queries");
      if (!over) draw(told.queries);
    } catch (error) {
      if (!over && !made) fill(room, h("div", { class: "card" }, failure(error, look)));
    }
  }

  function draw(list) {
    if (!list.length) {
      made = null;
      fill(room, h("div", { class: "card" }, empty({ title: "No query is registered", text: "Ask something of a stream in SQL, and listen to the answers as they come.", action: { text: "Register a query", onclick: () => show(true) } })));
    } else if (made) made.rows(list);
    else {
      made = table({
        caption: "Registered queries", key: (row) => row.query, rows: list,
        columns: [
          { name: "query", label: "Query", class: "name" },
          { name: "sql", label: "SQL", class: "sql", show: (sql) => h("code", { title: sql }, sql) },
          { name: "to", label: "Results in", show: target },
          { name: "state", label: "State", show: stateBadge },
          { name: "rate", label: "Rate", type: "double", show: (given) => rate(given ?? 0) },
          { name: "events", label: "Events", type: "bigint", show: (given) => count(given ?? 0) },
        ],
        actions: (row) => [
          h("button", { class: "button small", type: "button", onclick: () => listen(row.query) }, "Listen"), " ",
          h("button", { class: "button small danger", type: "button", onclick: () => unregister(row) }, "Unregister"),
        ],
      });
      fill(room, made);
    }
    const asked = params.get("query");
    if (asked && !listening && list.some((one) => one.query === asked)) listen(asked);
  }

  function listen(query) {
    live?.end();
    listening = query;
    app.replace({ query });
    live = liveEvents({ caption: `Results of ${query}`, start: async () => ({ rows: [], position: null }), path: `/queries/${api.part(query)}/follow`,
      nothing: empty({ title: "Listening", text: "Results appear here as they come. Earlier ones are in the query's stream." }) });
    fill(heard, live.element);
    live.element.querySelector(".end").append(h("button", { class: "button small quiet", type: "button", onclick: quiet }, "Close"));
    heard.scrollIntoView({ block: "nearest" });
  }

  function quiet() {
    live?.end();
    live = null;
    listening = null;
    fill(heard);
    app.replace({});
  }

  async function unregister(row) {
    const sure = await confirm({ title: `Unregister ${row.query}?`, text: "It ends. The stream of its results stays.", action: "Unregister" });
    if (!sure || !(await app.writing(() => api.del(`/queries/${api.part(row.query)}`)))) return;
    app.toast(`${row.query} is unregistered`, "done");
    if (listening === row.query) quiet();
    look();
  }

  look();
  const timer = setInterval(() => !document.hidden && look(), EVERY);
  return {
    element,
    streams: register.streams,
    end() {
      over = true;
      clearInterval(timer);
      live?.end();
    },
  };
}

function target(to) {
  if (!to) return "";
  return h("span", null, to.stream && h("a", { href: `/streams?${new URLSearchParams({ stream: to.stream })}` }, to.stream), to.webhook && h("span", { class: "muted", title: to.webhook }, to.stream ? " and a webhook" : "a webhook"));
}

/** The form that registers a query. */
function form(app, done) {
  const name = h("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false", pattern: "[A-Za-z][A-Za-z0-9_\\-]{0,80}", placeholder: "fast_cars" });
  const sql = h("textarea", { rows: 5, required: true, spellcheck: "false", placeholder: "SELECT vid, speed FROM reports WHERE speed > 90" });
  const to = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "the query's name" });
  const webhook = h("input", { type: "url", autocomplete: "off", placeholder: "https://…" });
  const since = h("select", null, h("option", { value: "now" }, "events from now on"), h("option", { value: "start" }, "all events of its streams"));
  const known = h("p", { class: "muted known" });
  const wrong = h("div", { class: "wrong", "aria-live": "polite" });
  const go = h("button", { class: "button primary", type: "submit" }, "Register");
  const field = (label, input, help) => h("label", { class: "field" }, h("span", null, label), input, help && h("small", null, help));
  const element = h("form", { class: "card register", hidden: true, onsubmit: submit },
    h("div", { class: "fields" }, field("Name", name), field("It sees", since), field("Results in stream", to), field("Tell a webhook too", webhook)),
    h("div", null, field("SQL", sql), known), wrong, h("div", { class: "buttons" }, go));

  async function submit(event) {
    event.preventDefault();
    go.disabled = true;
    fill(wrong);
    const body = { name: name.value.trim(), sql: sql.value.trim(), since: since.value, to: to.value.trim() || undefined, webhook: webhook.value.trim() || undefined };
    try {
      if (await app.writing(() => api.post("/queries", body), { quiet: true })) {
        app.toast(`${body.name} is registered`, "done");
        for (const one of [name, sql, to, webhook]) one.value = "";
        done();
      }
    } catch (error) {
      fill(wrong, note("bad", error.message), violations(error));
    } finally {
      go.disabled = false;
    }
  }

  return {
    element,
    focus: () => name.focus(),
    streams(list) {
      const said = list.map((one) => one.name).join(", ");
      if (known.textContent !== `Streams: ${said}`) known.textContent = `Streams: ${said}`;
    },
  };
}
