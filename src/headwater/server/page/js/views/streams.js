// Streams: all of the registry and the queries over them; or one, with its events and a box to publish into it.

import { all } from "./streams/all.js";
import { one } from "./streams/one.js";

export const title = "Streams";

export function mount(root, params, app) {
  const name = params.get("stream");
  return name ? one(root, name, params, app) : all(root, params, app);
}
