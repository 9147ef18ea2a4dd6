// Deploying: the difference first, then the change, then which units went on, ended and began.

import * as api from "../api.js";
import { fill, h } from "../dom.js";
import { many, seconds } from "../format.js";
import { open } from "../parts/dialog.js";
import { violations } from "../parts/empty.js";
import { note } from "../parts/health.js";
import { changes, touched } from "./changes.js";

const SINCE = [["now", "from now on"], ["start", "from the start of their streams"], ["left", "from where they had left off"]];

/** Ask and deploy: a promise of what the service says was done, or null. */
export async function askDeploy({ state, app }) {
  const { document: flow, deployed, plan, difference } = state;
  const since = h("select", null, SINCE.map(([value, words]) => h("option", { value }, words)));
  const progress = h("div", { class: "deploying", "aria-live": "polite" });
  // What the keys were is in the version that runs; without it, their names say enough.
  const before = deployed && (await api.get(`/flows/${api.part(flow.flow)}`).catch(() => null))?.document;
  const running = plan?.units.filter((unit) => !unit.idle) ?? [];
  const said = deployed
    ? `${flow.flow} runs as version ${deployed.version}. Units that are the same go on and do not notice; the others are cut, and their successors begin at that place.`
    : `${flow.flow} is new: ${many(running.length, "unit")} will be started.`;
  return open({
    title: deployed ? `Change ${flow.flow}` : `Deploy ${flow.flow}`,
    action: deployed ? "Change it" : "Deploy",
    body: h("div", { class: "deploy" },
      h("p", null, said),
      deployed && h("section", null, h("h3", null, touched(difference) ? many(touched(difference), "changed node") : "Nothing is changed"), changes(difference, before, flow)),
      !deployed && h("ul", { class: "units" }, running.map((unit) => h("li", null, h("span", { class: `runtime ${unit.runtime}` }, unit.runtime), h("span", null, unit.nodes.join(", "))))),
      h("label", { class: "field" }, h("span", null, deployed ? "Units that are new see their streams" : "It sees its streams"), since),
      progress),
    answer: async () => {
      const begun = Date.now();
      const tell = () => fill(progress, h("p", { class: "loading" }, `${deployed ? "Changing" : "Deploying"}: ${seconds(Math.round((Date.now() - begun) / 1000) || 0)}`));
      tell();
      const timer = setInterval(tell, 1000);
      try {
        const done = await app.writing(() => api.post("/flows", { text: state.text, since: since.value }), { quiet: true });
        fill(progress);
        return done;
      } catch (error) {
        fill(progress, h("div", { class: "note bad", role: "alert" }, h("span", { class: "dot bad" }), h("div", null, error.message, violations(error))));
        return null;
      } finally {
        clearInterval(timer);
      }
    },
  });
}

/** What a change did, to stand above the graph until it is closed. */
export function outcome(done, close) {
  const groups = [["started", "Started", "good"], ["kept", "Went on", "none"], ["ended", "Ended", "none"]];
  return h("div", { class: "outcome note good", role: "status" }, h("span", { class: "dot good" }),
    h("div", { class: "grow" },
      h("p", null, h("strong", null, `${done.flow} runs as version ${done.version}`), done.seconds !== undefined && done.seconds !== null && `, after ${seconds(done.seconds)}. `, "Rates appear as events come."),
      h("p", { class: "small" }, groups.filter(([key]) => done[key]?.length).map(([key, words]) => h("span", { class: "units-done" }, `${words}: `, h("span", { class: "mono" }, done[key].join(", ")))))),
    h("button", { class: "button small quiet", type: "button", onclick: close }, "Close"));
}

/** Why a flow can't be deployed here although it breaks no rule: it has code, and the service takes none. Null if it can. */
export function refused(state, health) {
  if (!state.code?.length || health?.allow_code !== false) return null;
  const what = state.code.join(", ");
  return note("warn", `This flow runs code (${what}), which this service does not take from the page. Start it with `, h("code", null, "headwater serve --allow-code"), ", or save the file and use ", h("code", null, "headwater flow deploy"), ".");
}
