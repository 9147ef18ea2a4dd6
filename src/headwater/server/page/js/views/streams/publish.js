// A box to publish events: JSON that is checked against the stream's columns while one types.

import { h, fill, calmly } from "../../dom.js";
import * as api from "../../api.js";
import { many } from "../../format.js";
import { note } from "../../parts/health.js";
import { example, fits, parse } from "./types.js";

const MOST = 5;

/** What a text holds: `{events, type, problems}`; one object, a list of them, or one on each line. */
export function read(text, fields) {
  const told = (events, type, problems = []) => ({ events, type, problems });
  if (!text.trim()) return told([], "application/json");
  let events;
  let type = "application/json";
  try {
    const given = JSON.parse(text);
    events = Array.isArray(given) ? given : [given];
  } catch (error) {
    const lines = text.split("\n").map((line, at) => [line.trim(), at + 1]).filter(([line]) => line);
    // Text whose first line is an object by itself is meant as lines.
    if (lines.length < 2 || !whole(lines[0][0])) return told([], type, [error.message]);
    type = "application/x-ndjson";
    events = [];
    for (const [line, at] of lines) {
      try {
        events.push(JSON.parse(line));
      } catch (wrong) {
        return told([], type, [`line ${at}: ${wrong.message}`]);
      }
    }
  }
  const problems = events.flatMap((event, at) => {
    const wrong = typeof event !== "object" || event === null || Array.isArray(event) ? "an event is an object, { … }" : fits(fields, event);
    return wrong ? [events.length > 1 ? `event ${at + 1}: ${wrong}` : wrong] : [];
  });
  return told(events, type, problems);
}

function whole(line) {
  try {
    return typeof JSON.parse(line) === "object";
  } catch {
    return false;
  }
}

/** An event to begin with: of each column a value of its type, the id after the last one's. */
function template(stream, fields) {
  const event = Object.fromEntries(fields.map((field) => [field.name, example(field.type)]));
  const last = stream.last_event?.[stream.id];
  if (stream.id && /^-?\d+$/.test(String(last ?? ""))) {
    const next = BigInt(last) + 1n;
    event[stream.id] = Number.isSafeInteger(Number(next)) ? Number(next) : String(next);
  }
  return JSON.stringify(event, null, 2);
}

/** The box: `{element, update(stream)}`; `published(answer)` is called after each time. */
export function publishBox(stream, app, published) {
  const fields = stream.fields.map((field) => ({ name: field.name, type: parse(field.type) }));
  const says = h("div", { class: "says", id: "publish-says", "aria-live": "polite" });
  const text = h("textarea", { rows: Math.min(14, 4 + fields.length), spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": `Events for ${stream.name}, as JSON`, "aria-describedby": "publish-says" });
  const key = h("input", { type: "text", autocomplete: "off", maxlength: 200, placeholder: "e.g. import 2026-01-31" });
  const go = h("button", { class: "button primary", type: "submit" }, "Publish");
  const done = h("div", { "aria-live": "polite" });
  const form = h("form", { class: "publish", onsubmit: send },
    text, says,
    h("details", null, h("summary", null, "Publish once under a key"),
      h("label", { class: "field" }, h("span", null, "Key"), key, h("small", null, "Under a key that was used before, nothing is added: safe to repeat."))),
    h("div", { class: "buttons" }, go,
      h("button", { class: "button quiet", type: "button", onclick: () => put(template(latest, fields)) }, "Template"),
      h("button", { class: "button quiet", type: "button", onclick: () => latest.last_event && put(JSON.stringify(latest.last_event, null, 2)) }, "Last event")),
    done);
  let latest = stream;
  let given = read("", fields);

  function put(what) {
    text.value = what;
    check();
    text.focus();
  }

  function check() {
    given = read(text.value, fields);
    const { events, problems } = given;
    text.setAttribute("aria-invalid", problems.length > 0);
    const missing = events.length === 1 ? fields.filter((field) => !(field.name in events[0])).map((field) => field.name) : [];
    if (problems.length) fill(says, problems.slice(0, MOST).map((one) => note("bad", one)), problems.length > MOST && h("p", { class: "muted" }, `and ${problems.length - MOST} more`));
    else if (!events.length) fill(says, h("p", { class: "muted" }, "One event { … }, a list [ … ], or one event on each line."));
    else fill(says, note("good", `${many(events.length, "event")} of the right columns`, missing.length ? `; ${missing.join(", ")} will be null` : ""));
    allow();
  }

  function allow() {
    go.disabled = latest.state === "stopped" || given.problems.length > 0 || !given.events.length;
    go.title = latest.state === "stopped" ? "The stream is stopped: resume it first" : "";
  }

  async function send(event) {
    event.preventDefault();
    check();
    if (go.disabled) return;
    go.disabled = true;
    try {
      const answer = await app.writing(() => api.send(`/streams/${api.part(stream.name)}/events`, text.value, given.type, { key: key.value.trim() }), { quiet: true });
      if (answer) told(answer);
    } catch (error) {
      fill(done, note("bad", error.message));
    } finally {
      allow();
    }
  }

  function told(answer) {
    if (answer.duplicate) {
      fill(done, note("info", "Nothing was added: this key was used before."));
    } else {
      const start = answer.start ?? String(BigInt(answer.position) - BigInt(answer.events));
      const place = `/streams?${new URLSearchParams({ stream: stream.name, after: start })}`;
      fill(done, note("good", `Published ${many(answer.events, "event")} at position ${start}; the stream now ends at ${answer.position}. `, h("a", { href: place }, "Link to it")));
      // An event with the same id again would be another event of that name.
      if (latest.id && given.events.length === 1) raise(given.events[0]);
    }
    published(answer);
  }

  function raise(event) {
    const used = event[latest.id];
    if (!/^-?\d+$/.test(String(used ?? ""))) return;
    const next = BigInt(used) + 1n;
    const kept = Number.isSafeInteger(Number(next)) ? Number(next) : String(next);
    text.value = JSON.stringify({ ...event, [latest.id]: kept }, null, 2);
    check();
  }

  text.addEventListener("input", calmly(150, check));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  text.value = template(stream, fields);
  check();

  return {
    element: form,
    update(now) {
      latest = now;
      allow();
    },
  };
}
