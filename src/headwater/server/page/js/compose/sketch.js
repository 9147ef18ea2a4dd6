// A plain drawing of a document, for one that the service could not lay out: layers by longest path, rows as they come.

import { has, inputsOf, keysOf, kindOf, names } from "./model.js";

export function sketch(document) {
  const there = names(document);
  const edges = there.flatMap((to) => inputsOf(keysOf(document, to)).map(({ port, target }) => {
    const [from, output] = target.split(".");
    return { from, to, port, output: output ?? null, static: has(document, from) && kindOf(document, from) === "static", stream: null };
  })).filter((edge) => has(document, edge.from));
  const column = Object.create(null);
  const at = (name, path = new Set()) => {
    if (name in column || path.has(name)) return column[name] ?? 0;
    const before = edges.filter((edge) => edge.to === name).map((edge) => at(edge.from, new Set([...path, name])));
    return (column[name] = before.length ? Math.max(...before) + 1 : 0);
  };
  const rows = {};
  const nodes = Object.fromEntries(there.map((name) => {
    const x = at(name);
    rows[x] = (rows[x] ?? -1) + 1;
    return [name, { x, y: rows[x] }];
  }));
  const counts = Object.values(rows).map((row) => row + 1);
  return { width: Object.keys(rows).length, height: Math.max(0, ...counts), nodes, edges };
}
