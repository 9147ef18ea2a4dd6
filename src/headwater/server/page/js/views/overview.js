// Overview: every flow as a graph with its rates, queues and health; watermarks; the last results.

import { h, fill } from "../dom.js";
import * as api from "../api.js";
import { many } from "../format.js";
import { empty, failure, loading } from "../parts/empty.js";
import { stateOf } from "../parts/health.js";
import { flowCard } from "./overview/card.js";

export const title = "Overview";

// Flows that are stopped or queries are not among those followed; nor is where streams end.
const EVERY = 5_000;

export function mount(root, params, app) {
  const summary = h("p", { class: "lead", role: "status" });
  const room = h("div", { class: "flows" }, loading());
  const compose = h("div", { class: "end" }, h("a", { class: "button", href: "/compose" }, "Compose a flow"));
  fill(root, h("div", { class: "page-head" }, h("h1", null, "Overview"), compose, summary), room);

  const cards = new Map();
  let listed = null;
  let told = null;
  let newest = new Map();
  let over = false;

  function draw() {
    if (over || !listed) return;
    const statuses = new Map((told?.flows ?? []).map((status) => [status.flow, status]));
    const names = [...new Set([...statuses.keys(), ...listed.keys()])];
    // Queries come last: they are looked at among the streams.
    const flows = names.filter((name) => !listed.get(name)?.is_query);
    const queries = names.filter((name) => listed.get(name)?.is_query);
    const wanted = [...flows, ...queries];
    for (const [name, card] of cards) {
      if (wanted.includes(name)) continue;
      card.end();
      cards.delete(name);
    }
    // The empty state offers the same.
    compose.hidden = !wanted.length;
    if (!wanted.length) {
      summary.textContent = "";
      fill(room, h("div", { class: "card" }, empty({
        title: "No flow is deployed yet",
        text: "Deploy one from a file, and it appears here with its rates, queues and results. Or put one together in the browser.",
        command: "headwater flow deploy FILE",
        action: h("a", { class: "button primary", href: "/compose" }, "Compose a flow"),
      })));
      return;
    }
    for (const name of wanted) {
      if (!cards.has(name)) cards.set(name, flowCard(name, app, reload));
      const results = (told?.results ?? []).filter((one) => one.flow === name);
      cards.get(name).update({ status: statuses.get(name), listed: listed.get(name), results, newest });
    }
    const elements = wanted.map((name) => cards.get(name).element);
    if (elements.length !== room.children.length || elements.some((one, at) => room.children[at] !== one)) fill(room, elements);
    summarise(wanted, statuses);
  }

  function summarise(wanted, statuses) {
    const states = wanted.map((name) => stateOf(statuses.get(name), listed.get(name)));
    const running = states.filter((state) => !["stopped", "failed"].includes(state)).length;
    const growing = [...statuses.values()].flatMap((status) => status.nodes).filter((node) => node.verdict === "growing").length;
    const failed = [...statuses.values()].flatMap((status) => status.units).filter((unit) => unit.state === "failed").length;
    const stopped = states.filter((state) => state === "stopped").length;
    const said = [
      `${many(wanted.length - stopped, "flow")} deployed${running === wanted.length ? " and running" : ""}`,
      stopped && `${stopped} stopped`,
      failed && `${many(failed, "unit")} failed`,
      growing && `${many(growing, "queue")} growing`,
    ].filter(Boolean).join(" · ");
    // Only what is new is told to who listens.
    if (summary.textContent !== said) summary.textContent = said;
  }

  async function reload() {
    try {
      const [{ flows }, { streams }] = await Promise.all([api.get("/flows"), api.get("/streams", { intervals: 1 }).catch(() => ({ streams: [] }))]);
      if (over) return;
      listed = new Map(flows.map((flow) => [flow.flow, flow]));
      newest = new Map(streams.map((stream) => [stream.name, stream.last_time]));
      draw();
    } catch (error) {
      if (!over && !listed) fill(room, h("div", { class: "card" }, failure(error, reload)));
    }
  }

  reload();
  const timer = setInterval(() => !document.hidden && reload(), EVERY);
  const stop = api.follow("/flows/follow", {}, {
    status: (data) => {
      told = data;
      draw();
    },
    trouble: ({ error }) => app.toast(error, "error"),
    state: (state) => room.classList.toggle("stale", state === "lost"),
  });

  return () => {
    over = true;
    stop();
    clearInterval(timer);
    for (const card of cards.values()) card.end();
  };
}
