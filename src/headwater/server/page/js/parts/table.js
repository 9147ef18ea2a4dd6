// Tables: a head that stays, its own scroll bar, rows for keyboard and mouse, cells cut at a length.
//
//   table({columns: [{name, type, label?, about?, show?, class?}], rows, key?, onRow?, href?, actions?, caption, more?, note?})
//
// `onRow(row)` makes rows selectable (Enter, space, arrows; c copies the row). `href(row)` gives rows an address: the first
// cell is a link, a click anywhere follows it. `actions(row)` fills a last cell. `more()` (a promise) is behind a button.
// `show(value, row)` of a column gives its cell's text or element. The answer is the box, with `rows(list)`,
// `select(test)` and `foot({more, note})` to change it later: rows that stay keep their elements, and so focus and selection.
// A row is the same if all of it is; with `key(row)` if that is, and then the cells that are other now are changed in place.

import { h, fill } from "../dom.js";
import { value as text, isTime } from "../format.js";
import { icon } from "./icons.js";
import { toast } from "./toast.js";

const NUMBERS = /^(tinyint|smallint|int|integer|bigint|long|short|byte|float|double|real|decimal|numeric|number|u?int\d+)/i;
const IDS = /^(id|survivor|entity|.*_id)$/;

export const isNumber = (type) => NUMBERS.test(type ?? "");
export const isId = (name) => IDS.test(name);

export function table({ columns, rows = [], key, onRow, href, actions, caption, more, note }) {
  const body = h("tbody");
  const foot = h("div", { class: "table-foot" });
  const head = columns.map((column) =>
    h("th", { scope: "col", class: isNumber(column.type) && !isId(column.name) && "right", title: column.about ?? column.type }, column.label ?? column.name));
  if (actions) head.push(h("th", { scope: "col" }, h("span", { class: "sr-only" }, "Actions")));
  const picks = Boolean(onRow || href);
  // Rows that can be picked take the focus themselves, and arrows scroll from there.
  const box = h("div", { class: "table-box", role: "region", tabindex: picks ? null : 0, "aria-label": caption },
    h("table", { class: "table" }, caption && h("caption", { class: "sr-only" }, caption), h("thead", null, h("tr", null, head)), body), foot);
  let known = new Map();
  let shown = [];

  const address = (row, at) => (at === 0 && href ? href(row) : null);

  function line(row) {
    const cells = columns.map((column, at) => cell(column, row, said(column, row), address(row, at)));
    if (actions) cells.push(h("td", { class: "actions" }, actions(row)));
    return h("tr", { tabindex: picks ? -1 : null }, cells);
  }

  /** Change those cells of a line that say something else now. */
  function renew(made, row) {
    columns.forEach((column, at) => {
      const old = made.children[at];
      const now = said(column, row);
      // An element that `show` gives again has changed itself, and stays where it is with its focus.
      if (now instanceof Node ? old.contains(now) || old.firstElementChild?.isEqualNode(now) : old.said === now) return;
      old.replaceWith(cell(column, row, now, address(row, at)));
    });
    if (!actions) return;
    const now = h("td", { class: "actions" }, actions(row));
    if (made.lastElementChild.textContent !== now.textContent) made.lastElementChild.replaceWith(now);
  }

  box.rows = (list) => {
    const before = known;
    const held = [...body.children].indexOf(document.activeElement);
    known = new Map();
    shown = list;
    const fresh = [];
    const lines = list.map((row) => {
      const base = key ? String(key(row)) : JSON.stringify(row);
      // The same row twice is two lines.
      let name = base;
      for (let n = 1; known.has(name); n += 1) name = `${base}#${n}`;
      const kept = before.get(name);
      const made = kept ?? line(row);
      if (kept && key) renew(kept, row);
      if (!kept) fresh.push(made);
      known.set(name, made);
      return made;
    });
    place(body, lines);
    // Where everything is new, nothing needs to be pointed at.
    if (fresh.length <= lines.length / 2) for (const made of fresh) made.classList.add("new");
    if (picks && lines.length && !lines.some((one) => one.tabIndex === 0)) lines[0].tabIndex = 0;
    if (held >= 0 && !body.contains(document.activeElement)) focus(Math.min(held, lines.length - 1));
    return box;
  };

  box.select = (test) => {
    [...body.children].forEach((one, at) => {
      if (test?.(shown[at])) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    });
  };

  box.foot = ({ more: further, note: said } = {}) => {
    const button = further && h("button", { class: "button small", type: "button" }, "Show more");
    button?.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await further();
      } catch (error) {
        toast(error.message, "error");
      } finally {
        button.disabled = false;
      }
    });
    fill(foot, button, said && h("span", null, said));
    foot.hidden = !button && !said;
  };

  function focus(at) {
    const one = body.children[at];
    if (!one) return;
    for (const other of body.children) other.tabIndex = -1;
    one.tabIndex = 0;
    one.focus();
  }

  const rowOf = (event) => event.target.closest("tbody tr");

  body.addEventListener("click", (event) => {
    const one = rowOf(event);
    if (!one || event.target.closest("button, a, input, select, textarea, label, details")) return;
    if (!picks) event.target.closest("td")?.classList.toggle("open");
    else if (!String(getSelection())) pick(one, event);
  });

  body.addEventListener("keydown", (event) => {
    const one = rowOf(event);
    if (event.target !== one || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = [...body.children].indexOf(one);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: body.children.length - 1 }[event.key];
    if (to !== undefined) focus(Math.max(0, Math.min(to, body.children.length - 1)));
    else if (event.key === "Enter" || event.key === " ") pick(one, event);
    else if (event.key === "c") copy(JSON.stringify(shown[at]));
    else return;
    event.preventDefault();
  });

  function pick(one, event) {
    const row = shown[[...body.children].indexOf(one)];
    if (onRow) {
      for (const other of body.children) other.tabIndex = other === one ? 0 : -1;
      box.select((candidate) => candidate === row);
      onRow(row);
    } else {
      // The link itself is clicked, so that Ctrl and the middle button mean what they always mean.
      one.querySelector("a")?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey: event.ctrlKey, metaKey: event.metaKey, shiftKey: event.shiftKey }));
    }
  }

  box.foot({ more, note });
  return box.rows(rows);
}

/** Put children in order, touching only what is out of place. */
function place(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, at) => {
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
  });
}

/** What a cell says: a text or an element. */
const said = (column, row) => column.show?.(row[column.name], row) ?? text(row[column.name]);

function cell(column, row, content, address) {
  const given = row[column.name];
  const plain = typeof content === "string" ? content : null;
  const id = isId(column.name) && !column.show;
  const kind = [id && "id", isNumber(column.type) && !id && "right", content === "" && "nothing", column.class].filter(Boolean).join(" ");
  // A text of no length is not nothing.
  const inside = content === "" ? (given === "" ? "“”" : "–") : address ? h("a", { href: address, tabindex: -1 }, content) : content;
  // The whole text as a title, a time as it was sent.
  const whole = plain && isTime(given) ? given : plain && plain.length > 24 ? plain : null;
  const made = h("td", { class: kind || null, title: whole }, inside, plain && (id || plain.length > 40) && copier(given, plain));
  made.said = content;
  return made;
}

function copier(given, plain) {
  const what = typeof given === "object" ? JSON.stringify(given) : String(given ?? plain);
  // Out of the tab order: a table of 50 rows would have 50 stops; `c` on a row copies it all.
  return h("button", { class: "button quiet copy", type: "button", tabindex: -1, title: "Copy", "aria-label": "Copy", onclick: () => copy(what) }, icon("copy"));
}

/** Put text on the clipboard, and say so. */
export async function copy(what) {
  try {
    await navigator.clipboard.writeText(what);
    toast("Copied", "done");
  } catch {
    toast("The browser does not let this page copy: select the text and press Ctrl+C", "error");
  }
}
