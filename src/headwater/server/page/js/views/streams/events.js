// The events of a stream or query as they come, newest first, no more than a screen can hold.

import { h, fill, calmly } from "../../dom.js";
import * as api from "../../api.js";
import { many } from "../../format.js";
import { empty, failure, loading } from "../../parts/empty.js";
import { dot } from "../../parts/health.js";
import { icon } from "../../parts/icons.js";
import { table } from "../../parts/table.js";

const MOST = 100;

/**
 * A table that follows: `{element, end()}`. `start()` is a promise of a table with a position; `path` is what is followed after it.
 * `onRow(row)` is called for one that is picked; `live` false shows only what is there.
 */
export function liveEvents({ start, path, caption, onRow, live = true, nothing }) {
  const state = h("span", { class: "live-state muted", role: "status" });
  const button = h("button", { class: "button small", type: "button", onclick: toggle });
  const room = h("div", { class: "events" }, loading());
  const head = h("div", { class: "card-head" }, h("h2", null, caption), state, h("div", { class: "end" }, button));
  const element = h("section", { class: "card flush live-events", "aria-label": caption }, head, room);

  let columns = [];
  let rows = [];
  let made = null;
  let stop = null;
  let position = null;
  let came = 0;
  let over = false;
  // Thousands of events a second are a few drawings a second.
  const draw = calmly(120, show);
  let drawn = 0;
  let held = false;
  let was = null;

  function show() {
    if (over) return;
    drawn = performance.now();
    if (!rows.length) {
      made = null;
      fill(room, nothing ?? empty({ title: "No event yet", text: "They appear here as they are published." }));
      return;
    }
    if (!columns.length) columns = [...new Set(rows.flatMap(Object.keys))].map((name) => ({ name }));
    if (made) made.rows(rows);
    else {
      made = table({ caption, columns, rows, onRow });
      fill(room, made);
    }
    made.foot({ note: rows.length >= MOST ? `The last ${MOST} are shown${came ? `; ${many(came, "event")} came since this was opened` : ""}.` : came ? `${many(came, "event")} came since this was opened.` : null });
  }

  // Rows don't run away from under a pointer.
  room.addEventListener("pointerenter", (event) => (held = event.pointerType === "mouse" && Boolean(made)));
  room.addEventListener("pointerleave", () => {
    if (held && was) tell(...was);
    held = false;
    was = null;
    if (made) soon();
  });

  function soon() {
    if (held) {
      was ??= said;
      return tell("info", "Held while the pointer is on it");
    }
    if (performance.now() - drawn > 500) show();
    else draw();
  }

  function go() {
    stop = api.follow(path, { after: position }, {
      events: (data) => {
        position = data.position;
        came += data.rows.length;
        if (data.columns?.length) columns = columns.length ? columns : data.columns;
        rows = [...data.rows.slice(-MOST).reverse(), ...rows].slice(0, MOST);
        soon();
      },
      ended: () => {
        halt();
        tell("none", "The stream is stopped");
      },
      trouble: ({ error }) => tell("bad", error),
      state: (now) => (now === "open" ? tell("good", "Live") : now === "lost" ? tell("warn", "Connecting again…") : tell("bad", now)),
    });
    fill(button, icon("pause"), "Pause");
  }

  function halt() {
    stop?.();
    stop = null;
    tell("none", "Paused");
    fill(button, icon("play"), "Follow");
  }

  function toggle() {
    if (stop) halt();
    else go();
  }

  let said = null;
  function tell(kind, words) {
    if (over || String(said) === String([kind, words])) return;
    said = [kind, words];
    fill(state, dot(kind), " ", words);
  }

  async function begin() {
    fill(room, loading());
    try {
      const told = await start();
      if (over) return;
      columns = told.columns ?? [];
      rows = (told.rows ?? []).slice(-MOST).reverse();
      position = told.position ?? null;
      show();
      if (live) go();
      else halt();
    } catch (error) {
      if (!over) fill(room, failure(error, begin));
    }
  }

  begin();
  return {
    element,
    end() {
      over = true;
      draw.cancel();
      stop?.();
    },
  };
}
