// One flow: its graph, what is wrong with it, its watermarks and last results, and what can be done with it.

import { h, fill } from "../../dom.js";
import * as api from "../../api.js";
import { count, many, number, percent, rate, seconds } from "../../format.js";
import { confirm } from "../../parts/dialog.js";
import { note, stateBadge, stateOf, verdictBadge } from "../../parts/health.js";
import { icon } from "../../parts/icons.js";
import { table } from "../../parts/table.js";
import { clocks } from "./clocks.js";
import { lastResults } from "./results.js";

/** A card of a flow: `{element, update({status, listed, results, newest}), end()}`; `changed` is called after something was done. */
export function flowCard(name, app, changed) {
  const state = h("span");
  const about = h("span", { class: "muted" });
  const buttons = h("div", { class: "end" });
  const troubles = h("div", { class: "troubles" });
  const drawn = h("div", { class: "drawn" });
  const chosen = h("div", { class: "chosen" });
  const times = clocks();
  const ends = lastResults(name);
  const below = h("div", { class: "below" }, times.element, ends.element);
  const element = h("section", { class: "card flow", "aria-label": `Flow ${name}` },
    h("div", { class: "card-head" }, h("h2", null, name), state, about, buttons), troubles, drawn, chosen, below);

  let version = null;
  let graph = null;
  let selected = null;
  let latest = null;
  let over = false;

  async function picture(wanted) {
    try {
      const [told, part] = await Promise.all([api.get(`/flows/${api.part(name)}`), import("../../parts/flowgraph.js").catch(() => null)]);
      if (over || version !== wanted) return;
      if (!part) return list();
      graph = part.flowGraph({ plan: told.plan, layout: told.layout, status: latest, selected, onSelect: choose });
      fill(drawn, graph.element);
    } catch (error) {
      fill(drawn, note("bad", error.message));
    }
  }

  /** Without the drawing, the nodes as a table say the same. */
  function list() {
    const made = table({
      caption: `Nodes of ${name}`, key: (row) => row.node, onRow: (row) => choose(row.node),
      columns: [
        { name: "node" }, { name: "kind" }, { name: "rate_in", type: "double", label: "in", show: rate },
        { name: "rate_out", type: "double", label: "out", show: rate }, { name: "in_transit", type: "bigint", label: "queue" },
        { name: "verdict", show: verdictBadge },
      ],
      rows: latest?.nodes ?? [],
    });
    graph = { update: (status) => made.rows(status.nodes), select: () => null, end: () => null };
    fill(drawn, made);
  }

  function choose(node) {
    selected = node === selected ? null : node;
    graph?.select?.(selected);
    detail();
  }

  function detail() {
    const row = latest?.nodes.find((one) => one.node === selected);
    if (!row) {
      delete chosen.dataset.node;
      fill(chosen);
      return;
    }
    const fact = (label, value) => value !== "" && h("div", null, h("dt", null, label), h("dd", { class: "number" }, value));
    if (chosen.dataset.node !== selected) {
      chosen.dataset.node = selected;
      fill(chosen, h("div", { class: "card-head" }, h("h3", null, row.node), h("span", { class: "muted" }, `${row.kind}, ${row.runtime}`), h("span", { class: "judged" }),
        h("span", { class: "end" }, h("button", { class: "button quiet icon small", type: "button", "aria-label": "Close", onclick: () => choose(selected) }, icon("close", 12)))),
      h("dl", { class: "facts wide" }));
    }
    fill(chosen.querySelector(".judged"), verdictBadge(row.verdict), " ", h("span", { class: "muted" }, row.reason ?? ""));
    fill(chosen.querySelector("dl"),
      fact("events in", count(row.in)), fact("a second in", rate(row.rate_in)),
      fact("events out", count(row.out)), fact("a second out", rate(row.rate_out)),
      fact("queue length", count(row.in_transit)), fact("expected", number(row.expected)),
      fact("service time", seconds(row.service)), fact("efficiency", percent(row.efficiency)), fact("unit", row.unit ?? ""));
  }

  const act = async (verb, question, done) => {
    if (question && !(await confirm({ danger: verb === "stop", ...question }))) return;
    const answer = await app.writing(() => api.post(`/flows/${api.part(name)}/${verb}`));
    if (!answer) return;
    app.toast(done(answer), "done");
    changed();
  };

  function offer(status, listed) {
    const halted = (status?.wanted ?? listed?.wanted) === "stopped";
    const at = status?.version ?? listed?.version;
    const key = [halted, at, status === undefined].join();
    if (buttons.dataset.key === key) return;
    buttons.dataset.key = key;
    const query = new URLSearchParams({ flow: name });
    fill(buttons,
      h("a", { class: "button small quiet", href: `/sustain?${query}` }, "Sustain"),
      listed?.is_query
        ? h("a", { class: "button small quiet", href: `/streams?${new URLSearchParams({ query: name.replace(/^query-/, "") })}` }, "Listen")
        : h("a", { class: "button small quiet", href: `/compose?${query}` }, "Compose"),
      at > 1 && h("button", { class: "button small", type: "button",
        onclick: () => act("undo", { title: `Undo version ${at} of ${name}?`, text: `The flow becomes what it was before, as a version of its own. Units that are the same in both go on, and do not notice.`, action: "Undo" },
          (answer) => `${name} is now at version ${answer.version}`) }, icon("undo"), "Undo"),
      halted
        ? h("button", { class: "button small", type: "button", onclick: () => act("resume", null, () => `${name} goes on`) }, icon("play"), "Resume")
        : h("button", { class: "button small", type: "button",
          onclick: () => act("stop", { title: `Stop ${name}?`, text: "Its units end where they are. Events that come in meanwhile wait in their streams; Resume goes on with them.", action: "Stop" }, () => `${name} is stopped`) }, icon("stop"), "Stop"));
  }

  function update({ status, listed, results, newest }) {
    latest = status ?? null;
    const at = status?.version ?? listed?.version;
    const now = stateOf(status, listed);
    if (state.dataset.state !== now) {
      state.dataset.state = now;
      fill(state, stateBadge(now));
    }
    const units = status?.units.length ?? listed?.units;
    const said = [`version ${at}`, units ? many(units, "unit") : null, listed?.is_query ? "a registered query" : null, status?.doing !== now ? status?.doing : null].filter(Boolean).join(" · ");
    if (about.textContent !== said) about.textContent = said;
    offer(status, listed);
    tell(status);
    if (at !== version) {
      version = at;
      picture(at);
    } else if (status) {
      graph?.update(status);
    }
    if (selected) detail();
    times.update(status, newest);
    ends.update(results);
    below.hidden = times.element.hidden && ends.element.hidden;
  }

  function tell(status) {
    const wrong = (status?.units ?? []).filter((unit) => unit.error || unit.state === "failed");
    const finishing = Object.entries(status?.finishing ?? {});
    const key = JSON.stringify([wrong.map((unit) => [unit.id, unit.state, unit.error]), finishing]);
    if (troubles.dataset.key === key) return;
    troubles.dataset.key = key;
    fill(troubles,
      wrong.map((unit) => note(unit.state === "failed" ? "bad" : "warn", h("strong", null, `${unit.name} (version ${unit.version}) ${unit.state === "failed" ? "has failed" : `is ${unit.state}`}: `), (unit.error ?? "no reason is known").replace(/[^.]$/, "$&."),
        unit.state === "failed" ? " Its events wait in their stream until a mended version is deployed." : "")),
      finishing.map(([job, left]) => note("info", `${job} finishes ${many(left, "execution")} of the version before`)));
    troubles.hidden = !troubles.childElementCount;
  }

  return {
    element,
    update,
    end() {
      over = true;
      graph?.end?.();
    },
  };
}
