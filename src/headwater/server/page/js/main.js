// The shell: which view an address shows, the header, the token. A view is loaded when it is first shown.

import { h, fill } from "./dom.js";
import * as api from "./api.js";
import { failure, loading } from "./parts/empty.js";
import { copy } from "./parts/table.js";
import { toast } from "./parts/toast.js";
import { askToken, tools } from "./shell.js";

const VIEWS = [
  ["/", "overview", "Overview"],
  ["/trace", "trace", "Trace"],
  ["/live", "live", "Live"],
  ["/streams", "streams", "Streams"],
  ["/compose", "compose", "Compose"],
  ["/sustain", "sustain", "Sustain"],
];

const main = document.getElementById("main");
const links = new Map();
const header = tools(document.getElementById("tools"), { changed: () => show(), health: (told) => (health = told) });
let health = null;
let leave = null;
let turn = 0;

fill(document.getElementById("views"), VIEWS.map(([path, name, title]) => {
  const link = h("a", { href: path }, title);
  links.set(name, link);
  return link;
}));

const find = (path) => VIEWS.find(([own]) => own === path.replace(/(.)\/+$/, "$1"));

const app = {
  /** Go to another view or address: `app.go("/trace?sink=stopped")`. */
  go(path) {
    if (path !== location.pathname + location.search) history.pushState(null, "", path);
    show(true);
  },
  /** Put a view's state into the address; what is null or "" is left out. The view stays as it is. */
  replace(params) {
    const given = params instanceof URLSearchParams ? [...params] : Object.entries(params).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
    const query = new URLSearchParams(given.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false));
    const text = query.toString();
    history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
  },
  toast,
  copy,
  token: api.token,
  health: () => health,
  /** Whether writing may be tried: true at once if it is open or a token is known, else after asking for one. */
  async needToken() {
    health ??= await api.get("/health").catch(() => null);
    if (health?.writes === "off" || health?.read_only) {
      toast("This service is read-only: it was started without writing.", "error");
      return false;
    }
    if (health?.writes === "open" || api.token()) return true;
    const told = await askToken();
    header.update();
    return told;
  },
  /** Do something that writes: asks for the token if one is needed, again if it is wrong; tells of errors. The answer, or null. */
  async writing(act, { quiet = false } = {}) {
    if (!(await app.needToken())) return null;
    for (;;) {
      try {
        return (await act()) ?? {};
      } catch (error) {
        if (error.status === 401) {
          const again = await askToken(error.message);
          header.update();
          if (again) continue;
          return null;
        }
        if (quiet) throw error;
        toast(error.message, "error");
        return null;
      }
    }
  },
};

async function show(moved = false) {
  const mine = ++turn;
  const [, name, title] = find(location.pathname) ?? [];
  for (const [own, link] of links) {
    if (own === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  links.get(name)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  try {
    leave?.();
  } catch (error) {
    console.error(error);
  }
  leave = null;
  document.title = `${title ?? "Not found"} · Headwater`;
  const root = h("div", { class: `view view-${name ?? "none"}` }, loading());
  fill(main, root);
  if (moved) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  if (!name) {
    fill(root, failure({ message: `There is no view at ${location.pathname}.` }), h("p", { class: "plain" }, h("a", { href: "/" }, "Go to the overview")));
    return;
  }
  try {
    const view = await import(`./views/${name}.js`).catch((error) => {
      console.error(error);
      throw new Error("This view can't be loaded; is the service still running?");
    });
    if (mine !== turn) return;
    root.replaceChildren();
    leave = view.mount(root, new URLSearchParams(location.search), app);
  } catch (error) {
    if (mine !== turn) return;
    console.error(error);
    fill(root, failure(error, () => location.reload()));
  }
}

// Links within the page change the view, and do not load the page again.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.href, location.href);
  if (link.target || link.hasAttribute("download") || to.origin !== location.origin || !find(to.pathname)) return;
  if (to.hash && to.pathname === location.pathname) return;
  event.preventDefault();
  app.go(to.pathname + to.search);
});

window.addEventListener("popstate", () => show());
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof api.ApiError) toast(event.reason.message, "error");
});
document.addEventListener("headwater-token", async () => {
  if (await askToken()) show();
  header.update();
});

show();
