// The header's right side: whether the service is there, the theme, the token.

import { h, fill } from "./dom.js";
import * as api from "./api.js";
import { open } from "./parts/dialog.js";
import { icon } from "./parts/icons.js";

const EVERY = 5_000;
const THEMES = { auto: ["half", "as the system"], light: ["sun", "light"], dark: ["moon", "dark"] };
const KEY = "headwater-theme";

/** Ask for the token: a promise of whether one was given. */
export async function askToken(why) {
  const field = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true, value: api.token() ?? "" });
  const keep = h("input", { type: "checkbox" });
  const told = await open({
    title: "Token for writing",
    action: "Use it",
    body: [
      why && h("p", { class: "note bad", role: "alert" }, h("span", { class: "dot bad" }), why),
      h("p", { class: "muted" }, "headwater serve prints it when it starts. It stays in this browser, and is sent to this service only."),
      h("label", { class: "field" }, h("span", null, "Token"), field),
      h("label", { class: "check" }, keep, "Remember it in this browser, beyond this window"),
      api.token() && h("button", { class: "button small", type: "button", onclick: () => { api.setToken(""); field.value = ""; field.focus(); } }, "Forget the token"),
    ],
    answer: () => field.value.trim() || null,
  });
  if (told) api.setToken(told, keep.checked);
  return Boolean(told);
}

/** Fill the header's tools; `changed` is called when the token is another, `health` with each answer of the service. */
export function tools(place, { changed, health }) {
  const state = h("span", { class: "connection", role: "status" });
  const theme = h("button", { class: "button quiet icon", type: "button" });
  const token = h("button", { class: "button quiet icon", type: "button" });
  fill(place, state, theme, token);

  let chosen = document.documentElement.dataset.theme ?? "auto";
  theme.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    chosen = names[(names.indexOf(chosen) + 1) % names.length];
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // Kept for this window only.
    }
    update();
    // Canvases have to draw themselves again.
    document.dispatchEvent(new CustomEvent("headwater-theme", { detail: chosen }));
  });
  token.addEventListener("click", async () => {
    if (await askToken()) changed();
    update();
  });

  function update() {
    const [picture, words] = THEMES[chosen];
    theme.replaceChildren(icon(picture, 16));
    set(theme, `Theme: ${words}`);
    token.replaceChildren(icon("key", 16));
    token.classList.toggle("known", Boolean(api.token()));
    set(token, api.token() ? "Token: known; change it" : "Enter the token for writing");
  }

  let last = "";
  async function look() {
    let said = ["bad", "Not reachable", "The service does not answer; it is asked again every few seconds."];
    try {
      const told = await api.get("/health");
      health(told);
      const about = `Headwater ${told.version ?? ""}`;
      said = told.status === "ok" ? ["good", "Connected", about] : ["warn", told.trouble ?? "Degraded", told.trouble ?? about];
      if (told.read_only || told.writes === "off") said[1] += " · read only";
    } catch (error) {
      if (error.status === 401) said = ["warn", "Token needed", error.message];
    }
    // Only what is news is told to who listens.
    if (String(said) === last) return;
    last = String(said);
    const [kind, words, more] = said;
    fill(state, h("span", { class: `dot ${kind}` }), h("span", { class: "said" }, words));
    state.title = kind === "good" ? more : `${words}. ${more}`;
  }

  update();
  look();
  setInterval(() => !document.hidden && look(), EVERY);
  document.addEventListener("visibilitychange", () => !document.hidden && look());
  return { update };
}

function set(button, name) {
  button.title = name;
  button.setAttribute("aria-label", name);
}
