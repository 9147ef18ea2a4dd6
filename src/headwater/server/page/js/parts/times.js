// How long ago something was, for what is looked at while it happens.

import { ago } from "../format.js";

/** "now", "3 s ago": digits below a second would be wrong before they are read. */
export function recent(iso, now = Date.now()) {
  const passed = Math.round((now - new Date(iso)) / 1000);
  return passed < 1 ? "now" : ago(new Date(now - 1000 * passed).toISOString(), now);
}

/** The mean of the rates of the last intervals: events that come in batches have a rate between them, too. */
export function meanRate(rates, last = rates?.length ?? 0) {
  const some = (rates ?? []).slice(-last);
  return some.length ? some.reduce((sum, one) => sum + one, 0) / some.length : 0;
}
