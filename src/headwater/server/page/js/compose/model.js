// A flow's document, {flow, nodes: {name: {kind: {from, …keys}}}}, and changes of it. Every change gives another document.

const NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
const PORT = /^[A-Za-z]\w*$/;
// Where the name of a port means something: a table, a parameter, a part of a column's name.
const NAMED = new Set(["sql", "function", "service", "job", "static", "join"]);

export const isName = (text) => NAME.test(text);
export const emptyDocument = (flow = "") => ({ flow, nodes: {} });
export const names = (document) => Object.keys(document?.nodes ?? {});
export const kindOf = (document, name) => Object.keys((has(document, name) && document.nodes[name]) || {})[0] ?? "?";
/** Whether there is a node of a name; texts may name one `constructor`. */
export const has = (document, name) => Object.hasOwn(document.nodes, name ?? "");
/** What a file says of a node; nothing where that is no list of keys. */
export function keysOf(document, name) {
  const [keys] = Object.values((has(document, name) && document.nodes[name]) || {});
  return keys && typeof keys === "object" && !Array.isArray(keys) ? keys : {};
}
export const kindsOf = (document) => Object.fromEntries(names(document).map((name) => [name, kindOf(document, name)]));
const nodeOf = (target) => target.split(".")[0];
/** The name that a port has when none is given. */
export const usual = (target) => target.replace(".", "_");

/** What `from` says, as a list of {port, target}. */
export function inputsOf(keys) {
  const from = keys?.from;
  if (from === null || from === undefined || from === "") return [];
  if (Array.isArray(from)) return from.map((target) => ({ port: usual(String(target)), target: String(target) }));
  if (typeof from === "object") return Object.entries(from).map(([port, target]) => ({ port, target: String(target) }));
  return [{ port: usual(String(from)), target: String(from) }];
}

/** The same as a file says it, in its shortest form; undefined if there is none. */
export function fromOf(inputs) {
  const told = inputs.filter(({ target }) => target);
  if (!told.length) return undefined;
  if (told.some(({ port, target }) => port !== usual(target))) return Object.fromEntries(told.map(({ port, target }) => [port, target]));
  const targets = told.map(({ target }) => target);
  return targets.length === 1 ? targets[0] : targets;
}

/** With other keys for a node; keys that are undefined go. `from` stays first. */
export function withKeys(document, name, keys) {
  const { from, ...rest } = keys;
  const kept = Object.entries({ from, ...rest }).filter(([, value]) => value !== undefined);
  return { ...document, nodes: { ...document.nodes, [name]: { [kindOf(document, name)]: Object.fromEntries(kept) } } };
}

export function withNode(document, name, kind, keys, before = null) {
  const added = [name, { [kind]: keys }];
  const entries = Object.entries(document.nodes);
  const at = before === null ? -1 : entries.findIndex(([own]) => own === before);
  entries.splice(at < 0 ? entries.length : at, 0, added);
  return { ...document, nodes: Object.fromEntries(entries) };
}

/** A name that no node has yet: `strong`, `strong_2`. */
export function freshName(document, wanted) {
  const base = wanted.replace(/^[^A-Za-z]+/, "").replace(/[^A-Za-z0-9_-]+/g, "_") || "node";
  let name = base;
  for (let n = 2; has(document, name); n += 1) name = `${base}_${n}`;
  return name;
}

export const readers = (document, name) => names(document).filter((own) => inputsOf(keysOf(document, own)).some(({ target }) => nodeOf(target) === name));

function reread(document, change) {
  const nodes = Object.fromEntries(Object.entries(document.nodes).map(([own, node]) => {
    const [kind] = Object.keys(node ?? {});
    const keys = node?.[kind];
    if (!keys || typeof keys !== "object") return [own, node];
    const before = inputsOf(keys);
    const inputs = before.flatMap((input) => change(input, kind, own));
    if (JSON.stringify(before) === JSON.stringify(inputs)) return [own, node];
    const { from, ...rest } = keys;
    const now = fromOf(inputs);
    return [own, { [kind]: now === undefined ? rest : { from: now, ...rest } }];
  }));
  return { ...document, nodes };
}

/** A node under another name; what reads it goes on doing so, and knows it by its old name where names mean something. */
export function renamed(document, name, to) {
  const moved = reread(document, (input, kind) => {
    if (nodeOf(input.target) !== name) return [input];
    const target = to + input.target.slice(name.length);
    const own = input.port !== usual(input.target);
    const stays = own || (NAMED.has(kind) && PORT.test(input.port));
    return [{ port: stays ? input.port : usual(target), target }];
  });
  return { ...moved, nodes: Object.fromEntries(Object.entries(moved.nodes).map(([own, node]) => [own === name ? to : own, node])) };
}

/** Without a node. What read it reads what it read, if that was one thing, else nothing of it. */
export function removed(document, name) {
  const inputs = inputsOf(keysOf(document, name));
  const instead = inputs.length === 1 && has(document, inputs[0].target) ? inputs[0].target : null;
  const without = reread(document, (input, kind) => {
    if (nodeOf(input.target) !== name) return [input];
    if (!instead || input.target !== name) return [];
    return [{ port: NAMED.has(kind) && PORT.test(input.port) ? input.port : usual(instead), target: instead }];
  });
  const { [name]: gone, ...nodes } = without.nodes;
  return { document: { ...without, nodes }, instead };
}

export function duplicated(document, name) {
  const copy = freshName(document, name);
  return { document: withNode(document, copy, kindOf(document, name), structuredClone(keysOf(document, name))), copy };
}

/** With an edge more: a kind that reads one thing reads this one instead. Null where nothing changes. */
export function connected(document, { from, output, to }, kind) {
  const target = output ? `${from}.${output}` : from;
  const keys = keysOf(document, to);
  const before = inputsOf(keys);
  if (before.some((input) => input.target === target)) return null;
  const input = { port: usual(target), target };
  return withKeys(document, to, { ...keys, from: fromOf(kind.inputs === "one" ? [input] : [...before, input]) });
}

/** With a join in front of a node, which reads it instead of the ports that it joins. */
export function joined(document, { node, ports }, name, join) {
  const keys = keysOf(document, node);
  const inputs = inputsOf(keys);
  const left = inputs.filter(({ port }) => !Object.hasOwn(ports, port));
  const first = Math.max(0, inputs.findIndex(({ port }) => Object.hasOwn(ports, port)));
  left.splice(first, 0, { port: name, target: name });
  const reading = withKeys(document, node, { ...keys, from: fromOf(left) });
  return withNode(reading, name, "join", join, node);
}

/** Which key of a node a violation is about: the one that it begins with or asks for; "from" for a port; null for the whole node. */
export function keyOf(violation, keys) {
  const text = violation.text;
  const first = /^[\w-]+/.exec(text)?.[0];
  if (keys.includes(first)) return first;
  const wanted = /\bneeds (?:one of )?([\w-]+)/.exec(text)?.[1];
  if (keys.includes(wanted)) return wanted;
  return violation.port && keys.includes("from") ? "from" : null;
}
