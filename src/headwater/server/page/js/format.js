// Values as people read them: times in the viewer's zone, numbers with separators, ids in full.

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const plain = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 3 });

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

export const isTime = (value) => typeof value === "string" && TIME.test(value);

/** The viewer's zone by its name. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** A time with its day; digits below a second only where there are some. */
export function time(iso) {
  if (!iso) return "";
  const moment = new Date(iso);
  const rest = fraction(iso);
  return `${day.format(moment)}, ${clock.format(moment)}${rest}`;
}

/** A time without its day. */
export const hour = (iso) => (iso ? clock.format(new Date(iso)) + fraction(iso) : "");

function fraction(iso) {
  const digits = /\.(\d+)/.exec(iso)?.[1].replace(/0+$/, "") ?? "";
  return digits ? `.${digits}` : "";
}

/** How long ago: "3 s ago". */
export function ago(iso, now = Date.now()) {
  return iso ? `${seconds(Math.max(0, (now - new Date(iso)) / 1000))} ago` : "never";
}

/** A length of time in a few characters. */
export function seconds(value) {
  if (value === null || value === undefined) return "";
  for (const [size, unit] of [[86_400, "days"], [3_600, "h"], [60, "min"]]) {
    if (value >= 2 * size) return `${plain.format(round(value / size))} ${unit}`;
  }
  if (value >= 1) return `${plain.format(round(value))} s`;
  if (value >= 1e-3) return `${plain.format(round(value * 1e3))} ms`;
  return value === 0 ? "0 s" : `${plain.format(round(value * 1e6))} µs`;
}

const round = (value) => Number(value.toPrecision(3));

/** A count in full, a rate or a mean in three digits. */
export const count = (value) => (value === null || value === undefined ? "" : plain.format(value));
export const number = (value) => (value === null || value === undefined ? "" : plain.format(Math.abs(value) >= 1000 ? Math.round(value) : round(value)));
/** A count in little room: 1.2M. */
export const compact = (value) => (value === null || value === undefined ? "" : short.format(value));
export const rate = (value) => (value === null || value === undefined ? "" : `${number(value)}/s`);
export const percent = (value) => (value === null || value === undefined ? "" : `${Math.round(100 * value)} %`);

/** Any value of a record or result as one line of text. */
export function value(given) {
  if (given === null || given === undefined) return "";
  if (isTime(given)) return time(given);
  if (typeof given === "boolean") return given ? "yes" : "no";
  if (typeof given === "number") return Number.isInteger(given) ? String(given) : String(given);
  if (typeof given === "object") {
    const { start, end, ...rest } = given;
    if (isTime(start) && isTime(end) && !Object.keys(rest).length) return `${time(start)} – ${hour(end)}`;
    return JSON.stringify(given);
  }
  return String(given);
}

/** Many things and one of them: "1 record", "3 records". */
export const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
