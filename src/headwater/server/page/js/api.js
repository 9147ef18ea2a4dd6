// The REST API as the page uses it: requests, errors in the server's own words, followed streams.

const KEY = "headwater-token";

/** An answer that is not one: `status`, and `told`, what the server said. */
export class ApiError extends Error {
  constructor(status, told) {
    super(told?.error ?? `the service answered ${status}`);
    this.status = status;
    this.told = told ?? {};
  }
}

// The link that `headwater serve` prints has the token behind #, which no server gets to see.
const handed = new URLSearchParams(location.hash.slice(1)).get("token");
if (handed) {
  sessionStorage.setItem(KEY, handed);
  history.replaceState(null, "", location.pathname + location.search);
}

export const token = () => sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);

/** Remember the token for this window, or for this browser. */
export function setToken(text, forGood = false) {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  if (text) (forGood ? localStorage : sessionStorage).setItem(KEY, text);
}

function headers(more) {
  const known = token();
  return { accept: "application/json", ...(known ? { authorization: `Bearer ${known}` } : {}), ...more };
}

/** A path with parameters; lists repeat their name, what is null or "" is left out. */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
    }
  }
  const text = query.toString();
  return `/api${path}${text ? `?${text}` : ""}`;
}

async function answered(response) {
  const text = await response.text();
  let told = null;
  try {
    told = text ? JSON.parse(text) : null;
  } catch {
    told = { error: text.slice(0, 500) };
  }
  if (!response.ok) throw new ApiError(response.status, told);
  return told;
}

async function request(method, url, { body, type, signal } = {}) {
  let response;
  try {
    const sent = body === undefined ? {} : { body, headers: headers({ "content-type": type }) };
    response = await fetch(url, { method, headers: headers(), signal, ...sent });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { error: "the service can't be reached; is it still running?" });
  }
  return answered(response);
}

const json = (body) => ({ body: JSON.stringify(body ?? {}), type: "application/json" });

export const get = (path, parameters, options) => request("GET", address(path, parameters), options);
export const post = (path, body, options) => request("POST", address(path), { ...json(body), ...options });
export const put = (path, body, options) => request("PUT", address(path), { ...json(body), ...options });
export const del = (path, parameters, options) => request("DELETE", address(path, parameters), options);
/** Send text as it is: events to publish. */
export const send = (path, text, type, parameters) => request("POST", address(path, parameters), { body: text, type });

/** A path piece of a name: `/streams/${part(name)}`. */
export const part = (name) => encodeURIComponent(name);

/**
 * Follow server-sent events: `follow("/flows/follow", {}, {status: data => …, state: text => …})`; call the answer to end.
 * It comes back after the last event it saw when the connection breaks. `state` is told "open", "lost" or an error's text.
 */
export function follow(path, parameters, handlers) {
  const ending = new AbortController();
  let last = null;
  let wait = 500;
  const tell = (state) => handlers.state?.(state);

  async function once() {
    const more = last === null ? {} : { "last-event-id": last };
    const response = await fetch(address(path, parameters), {
      headers: headers({ accept: "text/event-stream", ...more }),
      signal: ending.signal,
    });
    if (!response.ok) await answered(response);
    tell("open");
    wait = 500;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const pieces = (left + value).split("\n\n");
      left = pieces.pop();
      for (const piece of pieces) hear(piece);
    }
  }

  function hear(piece) {
    const heard = { event: "message", data: [] };
    for (const line of piece.split("\n")) {
      const [, name, text] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
      if (name === "data") heard.data.push(text);
      else if (name === "event") heard.event = text;
      else if (name === "id") last = text;
    }
    if (heard.data.length) handlers[heard.event]?.(JSON.parse(heard.data.join("\n")));
  }

  (async () => {
    while (!ending.signal.aborted) {
      try {
        await once();
        tell("lost");
      } catch (error) {
        if (ending.signal.aborted) return;
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          tell(error.message);
          return;
        }
        tell("lost");
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(2 * wait, 10_000);
    }
  })();
  return () => ending.abort();
}
