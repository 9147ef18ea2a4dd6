// Where vertices are: time runs from left to right, results lie above, records below, and what has about the same time is
// stacked. Columns are fixed in time, so that stacks move along with it and do not shuffle.

const EDGE = { left: 12, right: 16, top: 22, bottom: 26 };
const LABEL = 14; // room for a lane's name
const RADII = [7, 6, 5, 4.2, 3.5, 3, 2.6, 2.2, 1.8];
const ORDER = ["result", "step", "source"];
const GAPS = [0, 0, 0.26, 0.14]; // between kinds, for the edges, by how many kinds there are

/** The span of time to show: nearly all vertices, in steps so that it stays for a while. */
export function span(vertices, watermark) {
  const times = vertices.map((one) => one.time).filter((time) => time !== null).sort((a, b) => a - b);
  if (!times.length) return [0, 1000];
  const last = times[times.length - 1];
  const latest = watermark !== null && watermark > last && watermark - last < (last - times[0]) / 4 ? watermark : last;
  // A few stragglers do not squeeze the rest: they stand at the left edge.
  const first = times[Math.floor(times.length * 0.02)];
  const least = Math.max(latest - first, 1000) * 1.02;
  const wide = 1.15 ** Math.ceil(Math.log(least) / Math.log(1.15));
  return [latest - wide, latest];
}

export function layout(vertices, { width, height, watermark }) {
  const [begin, end] = span(vertices, watermark);
  const inner = Math.max(40, width - EDGE.left - EDGE.right);
  const scale = inner / (end - begin);
  const lanes = laid(vertices, height);
  const view = { begin, scale };
  const radius = RADII.find((one) => lanes.every((lane) => overfull(lane, view, one) <= lane.list.length / 12)) ?? RADII.at(-1);
  const places = new Map();
  for (const lane of lanes) stack(lane, view, radius, places);
  return { width, height, begin, end, scale, left: EDGE.left, lanes, radius, places, axis: height - EDGE.bottom };
}

const pitchOf = (radius) => 2 * radius + (radius > 3.5 ? 3 : 2);

/** Lanes from top to bottom: each sink, each step, each source; those with more vertices get more room. */
function laid(vertices, height) {
  const groups = ORDER.map((kind) => {
    const names = new Map();
    for (const one of vertices) {
      if (one.kind !== kind) continue;
      if (!names.has(one.name)) names.set(one.name, []);
      names.get(one.name).push(one);
    }
    return [...names].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, list]) => ({ kind, name, list }));
  }).filter((group) => group.length);
  const room = height - EDGE.top - EDGE.bottom;
  const gap = room * (GAPS[groups.length] ?? 0);
  const all = groups.flat();
  const free = Math.max(0, room - gap * (groups.length - 1) - all.length * (LABEL + 10));
  const weights = all.map((lane) => Math.sqrt(lane.list.length) + lane.list.length / 20);
  const total = weights.reduce((sum, one) => sum + one, 0) || 1;
  let top = EDGE.top;
  for (const group of groups) {
    for (const lane of group) {
      lane.top = top;
      lane.height = LABEL + 10 + (free * weights[all.indexOf(lane)]) / total;
      top += lane.height;
    }
    top += gap;
  }
  return all;
}

/** The lane's columns from left to right: `[number, vertices, how many columns wide they may be laid]`. */
function columns(lane, { begin, scale }, pitch) {
  const first = Math.floor((begin * scale) / pitch);
  const found = new Map();
  for (const one of lane.list) {
    const at = one.time === null ? -1 : Math.max(-1, Math.floor((one.time * scale) / pitch) - first);
    if (!found.has(at)) found.set(at, []);
    found.get(at).push(one);
  }
  const order = [...found].sort(([a], [b]) => a - b);
  const room = capacity(lane, pitch);
  return order.map(([at, list], n) => {
    // What has the same time may spread over half the empty columns beside it.
    const before = n ? at - order[n - 1][0] - 1 : 0;
    const after = n + 1 < order.length ? order[n + 1][0] - at - 1 : 0;
    const wide = Math.max(1, Math.min(Math.ceil(list.length / room), 1 + 2 * Math.floor(Math.min(before, after) / 2)));
    return [at, list, wide];
  });
}

const capacity = (lane, pitch) => Math.max(1, Math.floor((lane.height - LABEL) / pitch));

/** How many vertices have no room with dots of a size. */
function overfull(lane, view, radius) {
  const pitch = pitchOf(radius);
  const room = capacity(lane, pitch);
  return columns(lane, view, pitch).reduce((over, [, list, wide]) => over + Math.max(0, list.length - wide * room), 0);
}

function stack(lane, view, radius, places) {
  const pitch = pitchOf(radius);
  const origin = EDGE.left + Math.floor((view.begin * view.scale) / pitch) * pitch - view.begin * view.scale;
  const [far, room] = [EDGE.left - 5, lane.height - LABEL];
  for (const [at, list, wide] of columns(lane, view, pitch)) {
    list.sort((a, b) => a.born - b.born || (a.time ?? 0) - (b.time ?? 0));
    const rows = Math.ceil(list.length / wide);
    // A column too full for its lane is pressed together.
    const step = Math.min(pitch, room / rows);
    list.forEach((one, n) => {
      const [row, aside] = [Math.floor(n / wide), (n % wide) - (wide - 1) / 2];
      const x = at < 0 ? far : Math.max(far, origin + (at + 0.5 + aside) * pitch);
      // Results grow upwards, records downwards: both begin where the edges are.
      const y = lane.kind === "source" ? lane.top + LABEL + radius + row * step : lane.top + lane.height - radius - row * step;
      places.set(one.key, { x, y, vertex: one });
    });
  }
}

const SECOND = 1000;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000, 7_776_000, 31_536_000].map((one) => one * SECOND)];

/** Round times for the axis. */
export function ticks(begin, end, width) {
  const least = ((end - begin) * 72) / width;
  const step = STEPS.find((one) => one >= least) ?? STEPS.at(-1);
  const away = new Date(begin).getTimezoneOffset() * 60 * SECOND;
  const list = [];
  for (let at = Math.ceil((begin - away) / step) * step + away; at <= end; at += step) list.push(at);
  return { step, list };
}
