// Sustain: whether each queue of a flow can go on like that; what is measured against what is expected.

import { h, fill } from "../dom.js";
import * as api from "../api.js";
import { many } from "../format.js";
import { empty, failure, loading } from "../parts/empty.js";
import { note, trouble } from "../parts/health.js";
import { nodesTable, ranked } from "./sustain/nodes.js";
import { unitCard } from "./sustain/unit.js";

export const title = "Sustain";

const EVERY = 5_000;

export function mount(root, params, app) {
  const pick = h("select", { "aria-label": "Flow", onchange: () => choose(pick.value) });
  const says = h("div", { class: "verdict", "aria-live": "polite" });
  const room = h("div", { class: "sustained" }, loading());
  const head = h("div", { class: "page-head" }, h("h1", null, "Sustain"), h("div", { class: "pick" }, pick),
    h("p", { class: "lead" }, "Queue lengths as they are, against what M/M/c and Little’s law expect. What counts is whether a queue’s floor rises."));
  fill(root, head, says, room);

  const cards = new Map();
  let nodes = null;
  let flow = params.get("flow");
  let names = [];
  let history = { nodes: {} };
  let status = null;
  let over = false;

  function choose(name) {
    flow = name;
    status = null;
    app.replace({ flow });
    clear();
    fill(room, loading());
    remember();
    if (last) hear(last);
  }

  function clear() {
    for (const card of cards.values()) card.end();
    cards.clear();
    nodes = null;
  }

  let last = null;
  function hear(told) {
    last = told;
    const now = told.flows.map((one) => one.flow);
    if (now.join() !== names.join()) {
      names = now;
      fill(pick, names.map((name) => h("option", { value: name, selected: name === flow }, name)));
    }
    if (!flow && names.length) {
      // The flow in the greatest trouble is the one to see first.
      const worst = (one) => Math.min(...one.nodes.map((node) => trouble(node.verdict)), 9);
      flow = told.flows.slice().sort((a, b) => worst(a) - worst(b))[0].flow;
      pick.value = flow;
      app.replace({ flow });
      remember();
    }
    head.querySelector(".pick").hidden = names.length === 0;
    status = told.flows.find((one) => one.flow === flow) ?? null;
    draw();
  }

  function draw() {
    if (over) return;
    if (!status) {
      clear();
      fill(says);
      fill(room, h("div", { class: "card" }, flow && names.length
        ? empty({ title: `${flow} is not running`, text: "Only flows that run have queues to measure.", action: { text: "All flows", href: "/" } })
        : empty({ title: "No flow is running", text: "Queues are measured while a flow runs. Before that, this forecasts from the rates in a flow file:", command: "headwater flow sustain FILE", action: { text: "Compose a flow", href: "/compose" } })));
      return;
    }
    sum(status);
    if (!nodes) {
      nodes = nodesTable(flow);
      const charts = h("div", { class: "charts" });
      fill(room, nodes.element, h("h2", null, "Queue lengths over time"), charts);
    }
    nodes.update(ranked(status));
    units(room.querySelector(".charts"));
  }

  function units(place) {
    const sorted = status.units.slice().sort((a, b) => trouble(a.verdict) - trouble(b.verdict) || (b.in_transit ?? 0) - (a.in_transit ?? 0));
    for (const [id, card] of cards) {
      if (sorted.some((unit) => unit.id === id)) continue;
      card.end();
      card.element.remove();
      cards.delete(id);
    }
    sorted.forEach((unit, at) => {
      if (!cards.has(unit.id)) cards.set(unit.id, unitCard());
      const card = cards.get(unit.id);
      if (place.children[at] !== card.element) place.insertBefore(card.element, place.children[at] ?? null);
      card.update(unit, history);
    });
  }

  function sum({ nodes: all, units: running }) {
    const which = (verdict) => running.filter((unit) => unit.verdict === verdict && unit.state !== "failed").map((unit) => unit.name);
    const growing = which("growing");
    const bursting = which("bursting");
    const failed = running.filter((unit) => unit.state === "failed");
    const unknown = which("unknown");
    const key = JSON.stringify([flow, status.wanted, growing, bursting, unknown, failed.map((unit) => unit.id)]);
    if (says.dataset.key === key) return;
    says.dataset.key = key;
    const lines = [
      growing.length && note("bad", `${growing.join(", ")} can’t keep up: ${growing.length === 1 ? "its queue grows" : "their queues grow"} and will not come back by ${growing.length === 1 ? "itself" : "themselves"}.`),
      failed.length && note("bad", `${failed.map((unit) => unit.name).join(", ")} ${failed.length === 1 ? "has" : "have"} failed, and ${failed.length === 1 ? "does" : "do"} nothing: events wait.`),
      bursting.length && note("warn", `${bursting.join(", ")} ${bursting.length === 1 ? "has" : "have"} more in transit than steady arrivals explain, but ${bursting.length === 1 ? "comes" : "come"} back to where ${bursting.length === 1 ? "it was" : "they were"}.`),
      !growing.length && !failed.length && !bursting.length && (unknown.length === running.length
        ? note("info", "Too little has been seen to judge: verdicts need about a minute of history, and some events.")
        : note("good", `All ${many(all.length, "node")} keep up.`)),
    ].filter(Boolean);
    if (status.wanted === "stopped") lines.splice(0, lines.length, note("info", `${flow} is stopped: these are the last numbers that were measured.`));
    fill(says, lines);
  }

  async function remember() {
    if (!flow) return;
    const asked = flow;
    try {
      const told = await api.get(`/flows/${api.part(asked)}/history`);
      if (over || asked !== flow) return;
      history = told;
      if (status) draw();
    } catch {
      // The tables are there without their pictures.
    }
  }

  remember();
  const timer = setInterval(() => !document.hidden && remember(), EVERY);
  const stop = api.follow("/flows/follow", {}, {
    status: hear,
    trouble: ({ error }) => app.toast(error, "error"),
    state: (state) => {
      room.classList.toggle("stale", state === "lost");
      if (!["open", "lost"].includes(state)) fill(room, h("div", { class: "card" }, failure(new Error(state), () => app.go(location.pathname + location.search))));
    },
  });
  return () => {
    over = true;
    stop();
    clearInterval(timer);
    clear();
  };
}
