// The head of the view: which flow, how it stands to what is deployed, and what can be done with all of it.

import { fill, h } from "../dom.js";
import { many } from "../format.js";
import { icon } from "../parts/icons.js";
import { touched } from "./changes.js";
import { names } from "./model.js";

/** `act` has `name(text)`, `open(flow)`, `fresh()`, `load(file)`, `save()`, `copy()`, `undo()`, `redo()`, `versions()`, `undoChange()`, `deploy()`, `flows()`. */
export function toolbar(act) {
  const name = h("input", { class: "flow-name", "aria-label": "Name of the flow", placeholder: "name of the flow", spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  const badge = h("span", { class: "badge", role: "status" });
  const undo = button("undo", "Undo the last edit (Ctrl+Z)", act.undo);
  const redo = button("undo", "Redo (Ctrl+Shift+Z)", act.redo);
  redo.classList.add("mirrored");
  const versions = h("button", { class: "button", type: "button", onclick: () => act.versions() }, "Versions");
  const back = h("button", { class: "button", type: "button", title: "Deploy the version before this one again", onclick: () => act.undoChange() }, "Undo change");
  const deploy = h("button", { class: "button primary", type: "button", onclick: () => act.deploy() }, icon("play", 12), "Deploy");
  const file = h("input", { type: "file", accept: ".yaml,.yml,.json,text/yaml,application/json", hidden: true });
  const list = h("div", { class: "menu-list" });
  const menu = h("details", { class: "menu" }, h("summary", { class: "button" }, "Open", icon("down", 12)), list);

  name.addEventListener("input", () => act.name(name.value));
  file.addEventListener("change", () => {
    if (file.files[0]) act.load(file.files[0]);
    file.value = "";
  });
  menu.addEventListener("toggle", async () => {
    if (!menu.open) return;
    const flows = await act.flows();
    fill(list,
      h("button", { type: "button", onclick: pick(act.fresh) }, icon("plus", 12), "A new flow"),
      h("button", { type: "button", onclick: pick(() => file.click()) }, "A file…"),
      flows.length > 0 && h("h3", null, "Deployed"),
      flows.map((flow) => h("button", { type: "button", onclick: pick(() => act.open(flow.flow)) }, h("strong", null, flow.flow), h("span", { class: "muted" }, [flow.version && `version ${flow.version}`, flow.state].filter(Boolean).join(", ")))));
  });
  const pick = (go) => () => {
    menu.open = false;
    go();
  };
  const outside = (event) => {
    if (menu.open && !menu.contains(event.target)) menu.open = false;
  };
  const escape = (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  };
  document.addEventListener("pointerdown", outside);
  document.addEventListener("keydown", escape);

  function button(picture, title, go) {
    return h("button", { class: "button icon", type: "button", title, "aria-label": title, onclick: () => go() }, icon(picture, 15));
  }

  const element = h("header", { class: "page-head compose-head" },
    h("h1", { class: "sr-only" }, "Compose"), name, badge,
    h("div", { class: "end" },
      menu, file,
      h("button", { class: "button", type: "button", title: "Save the flow file", onclick: () => act.save() }, "Save"),
      button("link", "Copy a link to this flow", act.copy), undo, redo, versions, back, deploy));

  return {
    element,
    update(state, { canUndo, canRedo, refusal }) {
      if (document.activeElement !== name) name.value = state.document.flow ?? "";
      undo.disabled = !canUndo;
      redo.disabled = !canRedo;
      versions.hidden = !state.deployed;
      back.hidden = !(state.deployed?.version > 1);
      const n = touched(state.difference);
      const wrong = state.violations.filter((one) => !one.soft).length;
      const [look, words] = wrong ? ["bad", many(wrong, "problem")]
        : !names(state.document).length ? ["", "empty"]
          : state.violations.length ? ["", "not finished"]
          : !state.deployed ? ["info", "not deployed"]
            : n ? ["info", `${many(n, "change")} to version ${state.deployed.version}`]
              : state.deployed.wanted === "stopped" ? ["warn", `version ${state.deployed.version}, stopped`] : ["good", `as deployed, version ${state.deployed.version}`];
      badge.className = `badge ${look}`;
      if (badge.textContent !== words) badge.textContent = words;
      // Still to be reached and clicked: it says why not.
      deploy.setAttribute("aria-disabled", String(Boolean(refusal)));
      deploy.title = refusal ?? "Deploy, or change what runs";
    },
    end() {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("keydown", escape);
    },
  };
}
