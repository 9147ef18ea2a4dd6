// The part of a live graph that is shown: vertices by key, edges between them, the oldest dropped beyond a limit.

export const LIMITS = [300, 1000, 3000];
const EDGES = 4; // for each vertex, at most: a bound on what is drawn

const moment = (iso) => {
  const at = iso ? Date.parse(iso) : NaN;
  return Number.isNaN(at) ? null : at;
};

// A step is a result of what is before it and a record of what is after it: names and ids say which vertex an edge means.
export const key = (kind, name, id) => `${kind}\n${name}\n${id}`;

export class Graph {
  constructor(limit) {
    this.limit = limit;
    this.clear();
  }

  clear() {
    this.vertices = new Map();
    this.edges = new Map();
    this.totals = { vertices: 0, edges: 0, labels: 0 };
    this.watermark = null;
    this.position = null;
    this.turn = 0;
  }

  /** Begin anew with what the server shows of the graph. */
  load(told) {
    this.clear();
    this.take(told);
    // Records whose results are not among what is shown go first when room is needed.
    const all = [...this.vertices.values()];
    this.vertices = new Map([...all.filter((one) => !one.edges.length), ...all.filter((one) => one.edges.length)].map((one) => [one.key, one]));
  }

  /** Add what a batch brought: vertices, edges, labels. */
  add(change) {
    this.take(change);
    for (const { kind, name, id } of change.labels ?? []) {
      const found = kind ? this.vertices.get(key(kind, name, id)) : this.from(name, id);
      if (found) found.expired = true;
    }
  }

  take({ vertices, edges, totals, watermark, position }) {
    this.turn += 1;
    for (const told of vertices) {
      const own = key(told.kind, told.name, told.id);
      const found = this.vertices.get(own) ?? { key: own, kind: told.kind, name: told.name, id: told.id, edges: [], born: this.turn };
      found.event_time = told.event_time;
      found.delivered = told.delivered;
      found.batch = told.batch;
      found.time = moment(told.event_time) ?? moment(told.delivered);
      found.expired = Boolean(told.expired);
      found.marked = Boolean(told.marked) || Boolean(found.marked);
      this.touch(found);
    }
    for (const told of edges) this.join(told);
    if (totals) this.totals = totals;
    if (watermark) this.watermark = watermark;
    if (position !== undefined) this.position = position;
    this.prune();
  }

  // The order of a map is that in which its keys came: what is touched again moves to its end.
  touch(vertex) {
    this.vertices.delete(vertex.key);
    this.vertices.set(vertex.key, vertex);
  }

  from(name, id) {
    return this.vertices.get(key("source", name, id)) ?? this.vertices.get(key("step", name, id));
  }

  to(name, id) {
    return this.vertices.get(key("result", name, id)) ?? this.vertices.get(key("step", name, id));
  }

  join(told) {
    const [from, to] = [this.from(told.source, told.source_id), this.to(told.sink, told.result_id)];
    if (!from || !to || from === to) return;
    const own = `${from.key}\n${to.key}`;
    if (this.edges.has(own)) return;
    const edge = { key: own, from, to };
    this.edges.set(own, edge);
    from.edges.push(edge);
    to.edges.push(edge);
    taint(to, from.marked);
  }

  prune() {
    for (const vertex of this.vertices.values()) {
      if (this.vertices.size <= this.limit) break;
      this.vertices.delete(vertex.key);
      for (const edge of vertex.edges) this.cut(edge, vertex);
    }
    for (const edge of this.edges.values()) {
      if (this.edges.size <= EDGES * this.limit) break;
      this.cut(edge);
    }
  }

  cut(edge, gone) {
    this.edges.delete(edge.key);
    for (const end of [edge.from, edge.to]) if (end !== gone) end.edges.splice(end.edges.indexOf(edge), 1);
  }

  /** Shown vertices that have an id, whatever they are. */
  find(id) {
    return [...this.vertices.values()].filter((one) => one.id === id);
  }

  get names() {
    const found = new Map();
    for (const { kind, name } of this.vertices.values()) found.set(`${kind}\n${name}`, { kind, name });
    return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** A result that holds a marked record is marked, and so is what comes of it. */
function taint(vertex, marked) {
  if (!marked || vertex.marked) return;
  vertex.marked = true;
  for (const edge of vertex.edges) if (edge.from === vertex) taint(edge.to, true);
}

/** The vertices behind an edge's other end. */
export const neighbours = (vertex) => vertex.edges.map((edge) => (edge.from === vertex ? edge.to : edge.from));

/**
 * Which vertices a filter lets through: with a name or a mark, what they are connected to comes along.
 * Expired records whose results are older than what is shown are left out: nothing of them can be seen.
 */
export function filtered(graph, { name, marked, state }) {
  const all = [...graph.vertices.values()].filter((one) => one.edges.length || !one.expired || one.marked || one.kind === "result");
  let chosen = all;
  if (name) chosen = chosen.filter((one) => one.name === name);
  if (marked) chosen = chosen.filter((one) => one.marked);
  if (name || marked) {
    const along = new Set(chosen);
    for (const one of chosen) for (const other of neighbours(one)) along.add(other);
    chosen = all.filter((one) => along.has(one));
  }
  // Results are past from the start: the state asked for is that of records, and of steps' rows.
  if (state === "alive") chosen = chosen.filter((one) => one.kind === "result" || !one.expired);
  if (state === "expired") chosen = chosen.filter((one) => one.kind === "result" || one.expired);
  return chosen;
}

/** How many of what there are. */
export function counted(vertices) {
  const counts = { alive: 0, expired: 0, results: 0, marked: 0 };
  for (const one of vertices) {
    if (one.kind === "result") counts.results += 1;
    else if (one.expired) counts.expired += 1;
    else counts.alive += 1;
    if (one.marked) counts.marked += 1;
  }
  return counts;
}
