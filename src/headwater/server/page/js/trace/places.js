// The store's sources and sinks: found by name, linked by streams, and the addresses of what is in them.

import { get } from "../api.js";

const query = (given) => {
  const text = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== null && value !== undefined && value !== "")).toString();
  return `/trace${text ? `?${text}` : ""}`;
};

export const resultLink = (sink, id) => query({ sink, result: id });
export const recordLink = (source, id) => query({ source, id });
export const entityLink = (entity) => query({ entity });
export const searchLink = (sink) => query({ sink });

/** What the store holds, with ways to find it. */
export async function load(options) {
  return places(await get("/store", {}, options));
}

export function places({ flows = [], sources: all = [], sinks = [], counts = {} }) {
  // Rows of named steps are kept like records, but nobody holds one.
  const sources = all.filter((one) => !one.step);
  const named = (list, name, flow) =>
    list.find((one) => one.qualified === name) ??
    list.find((one) => one.name === name && one.flow === flow) ??
    list.find((one) => one.name === name && one.latest !== false) ??
    list.find((one) => one.name === name);
  const short = (list, one) => (list.filter((other) => other.name === one.name).length > 1 ? one.qualified : one.name);
  const shared = (one, list) => list.filter((other) => (one?.streams ?? []).some((stream) => (other.streams ?? []).includes(stream)));
  return {
    flows, sources, sinks, counts,
    sink: (name, flow) => named(sinks, name, flow),
    source: (name, flow) => named(sources, name, flow),
    /** The name by which an address calls it: its own where no other flow has one of that name. */
    sinkName: (one) => short(sinks, one),
    sourceName: (one) => short(sources, one),
    /** The sinks whose results are this source's records, by a stream; and the sources that read a sink's results. */
    makers: (source) => shared(source, sinks),
    readers: (sink) => shared(sink, sources),
    /** What an entity's name means here: `{id, stream, sinks, sources}`. */
    entity(name) {
      const [, place, id] = /^hw:(.+)\/([^/]+)$/.exec(name) ?? [];
      if (!place) return { id: null, stream: null, sinks: [], sources: [] };
      const stream = place.startsWith("streams/") ? place.slice("streams/".length) : null;
      const has = (one) => one.qualified === place || (stream !== null && (one.streams ?? []).includes(stream));
      return { id, stream, sinks: sinks.filter(has), sources: sources.filter(has) };
    },
  };
}

/** Sinks or sources by their flow, in the order of the store: `[[flow, list]…]`. */
export function byFlow(list) {
  const groups = new Map();
  for (const one of list) groups.set(one.flow, [...(groups.get(one.flow) ?? []), one]);
  return [...groups];
}
