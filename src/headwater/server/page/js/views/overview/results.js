// The last results of each sink; a row leads to where it came from.

import { h, fill } from "../../dom.js";
import { hour, isTime } from "../../format.js";
import { table } from "../../parts/table.js";

const MOST = 5;

/** Small tables, one for each sink: `{element, update(results)}`. */
export function lastResults(flow) {
  const list = h("div", { class: "sinks" });
  const element = h("div", { class: "results", hidden: true }, h("h3", null, "Last results"), list);
  const shown = new Map();

  function update(results) {
    element.hidden = !results.length;
    for (const [sink, one] of shown) {
      if (results.some((other) => other.sink === sink)) continue;
      one.element.remove();
      shown.delete(sink);
    }
    for (const one of results) {
      if (!shown.has(one.sink)) {
        shown.set(one.sink, sinkTable(flow, one));
        list.append(shown.get(one.sink).element);
      }
      shown.get(one.sink).update(one);
    }
  }

  return { element, update };
}

const idOf = (row) => row.result_id ?? row.event_id ?? row.id;

function sinkTable(flow, { sink, qualified }) {
  const name = qualified ?? sink;
  const room = h("div");
  const element = h("section", { class: "sink" },
    h("h4", null, h("a", { href: `/trace?${new URLSearchParams({ sink: name })}` }, sink)), room);
  const address = (row) => `/trace?${new URLSearchParams({ sink: name, result: idOf(row) ?? "" })}`;
  let made = null;
  let columns = "";

  function update({ rows, columns: told }) {
    const shown = rows.slice(0, MOST);
    element.classList.toggle("none", !shown.length);
    const names = [...new Set(shown.flatMap(Object.keys))];
    if (!names.length) {
      made = null;
      columns = "";
      if (!room.querySelector("p")) fill(room, h("p", { class: "muted" }, "No result yet."));
    } else if (names.join() !== columns || !made) {
      columns = names.join();
      made = table({ caption: `Last results of ${sink} of ${flow}`, columns: names.map((column) => ({ name: column, type: told?.find((one) => one.name === column)?.type ?? kind(shown, column), show: column === "event_time" ? brief : undefined })), rows: shown, href: address });
      fill(room, made);
    } else {
      made.rows(shown);
    }
  }

  return { element, update };
}

// Of a time within a day its clock says enough; the title has all of it.
const brief = (given) => (isTime(given) && Math.abs(Date.now() - new Date(given)) < 43_200_000 ? hour(given) : undefined);
const kind = (rows, column) => (rows.every((row) => row[column] === null || typeof row[column] === "number") ? "double" : "string");
