// The types of columns: read from their text, checked against values, and shown by an example.

/** A type as a tree: `{name, of?, fields?}`, for `array<struct<a:int,b:double>>` and the like. */
export function parse(text) {
  let at = 0;
  const skip = () => {
    while (text[at] === " ") at += 1;
  };
  function word() {
    skip();
    const found = /^`[^`]*`|^[^<>:, ()]+/.exec(text.slice(at))?.[0] ?? "";
    at += found.length;
    return found.replaceAll("`", "");
  }
  function one() {
    const name = word().toLowerCase();
    const made = { name };
    if (text[at] === "(") at = text.indexOf(")", at) + 1 || text.length;
    skip();
    if (text[at] !== "<") return made;
    at += 1;
    const inside = [];
    while (at < text.length && text[at] !== ">") {
      if (name === "struct") {
        const field = word();
        skip();
        if (text[at] === ":") at += 1;
        inside.push({ name: field, type: one() });
      } else inside.push(one());
      // What Spark may say after a type: NOT NULL, COMMENT …
      while (at < text.length && text[at] !== "," && text[at] !== ">") at += 1;
      if (text[at] === ",") at += 1;
    }
    at += 1;
    if (name === "struct") made.fields = inside;
    else made.of = inside;
    return made;
  }
  return one();
}

const WHOLE = { tinyint: 7, byte: 7, smallint: 15, short: 15, int: 31, integer: 31, bigint: 63, long: 63 };
const REAL = ["float", "real", "double"];
const TIMES = ["timestamp", "timestamp_ntz", "timestamp_ltz"];

/** What is wrong with a value, in words; null if it fits, as null always does. */
export function misfit(type, value, path) {
  if (value === null || value === undefined) return null;
  const no = (what) => `${path} is ${said(value)}, not ${what}`;
  const { name } = type;
  if (name in WHOLE) {
    const digits = typeof value === "number" ? Number.isInteger(value) : typeof value === "string" && /^[+-]?\d+$/.test(value);
    if (!digits) return no(`a whole number (${name})`);
    if (typeof value === "number" && !Number.isSafeInteger(value)) return `${path} is too large for a number of JSON: write it as text, "${value}"`;
    const whole = BigInt(value);
    return whole >= -(1n << BigInt(WHOLE[name])) && whole < 1n << BigInt(WHOLE[name]) ? null : `${path} is too large for ${name}`;
  }
  if (REAL.includes(name)) return typeof value === "number" || ["NaN", "Infinity", "-Infinity"].includes(value) ? null : no(`a number (${name})`);
  if (name === "decimal") return typeof value === "number" || /^[+-]?\d*\.?\d+$/.test(value) ? null : no("a decimal");
  if (name === "boolean") return typeof value === "boolean" ? null : no("true or false");
  if (TIMES.includes(name)) return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? null : no("a time such as 2026-01-31T12:00:00Z");
  if (name === "date") return typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value) ? null : no("a date such as 2026-01-31");
  if (name === "array") {
    if (!Array.isArray(value)) return no("a list");
    return first(value.map((item, at) => misfit(type.of[0], item, `${path}[${at}]`)));
  }
  if (name === "map") {
    if (!plain(value)) return no("an object");
    return first(Object.entries(value).map(([key, item]) => misfit(type.of[1], item, `${path}.${key}`)));
  }
  if (name === "struct") {
    if (!plain(value)) return no("an object");
    return fits(type.fields, value, `${path}.`);
  }
  if (name === "string" || name === "binary" || name === "varchar" || name === "char") return typeof value === "string" ? null : no("a text");
  return null;
}

/** What is wrong with an object of such columns. */
export function fits(fields, value, before = "") {
  const known = new Map(fields.map((field) => [field.name, field.type]));
  for (const [name, item] of Object.entries(value)) {
    if (!known.has(name)) return `${before}${name} is not among the columns ${[...known.keys()].join(", ")}`;
    const wrong = misfit(known.get(name), item, before + name);
    if (wrong) return wrong;
  }
  return null;
}

/** A value of a type to begin with. */
export function example(type) {
  const { name } = type;
  if (name in WHOLE || REAL.includes(name) || name === "decimal") return 0;
  if (name === "boolean") return false;
  if (TIMES.includes(name)) return new Date().toISOString();
  if (name === "date") return new Date().toISOString().slice(0, 10);
  if (name === "array") return [example(type.of[0])];
  if (name === "map") return {};
  if (name === "struct") return Object.fromEntries(type.fields.map((field) => [field.name, example(field.type)]));
  return "";
}

const plain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const first = (list) => list.find(Boolean) ?? null;
const said = (value) => {
  const text = JSON.stringify(value);
  return text.length > 30 ? `${text.slice(0, 30)}…` : text;
};
