// Conditions on columns as people choose them, and the SQL that they mean. The server checks it; here values are quoted.

const NUMBER = /^(u?int|bigint|long|short|byte|tinyint|smallint|double|float|halffloat|real|decimal|numeric|hugeint)/i;
const LITERAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** What may be asked of a column of a type. */
export function family(type = "") {
  const text = type.toLowerCase();
  if (/^(struct|list|array|map|large_list|binary|blob|large_binary|fixed_size)/.test(text)) return "other";
  if (NUMBER.test(text)) return "number";
  if (/^bool/.test(text)) return "boolean";
  if (/^timestamp/.test(text)) return "time";
  if (/^date/.test(text)) return "date";
  if (/^(string|utf8|varchar|char|text|large_string|large_utf8|dictionary)/.test(text)) return "text";
  return "other";
}

const ORDER = [["=", "="], ["!=", "≠"], ["<", "<"], ["<=", "≤"], [">", ">"], [">=", "≥"]];
const NONE = [["null", "is null"], ["some", "is not null"]];
const OPERATORS = {
  number: [...ORDER, ...NONE],
  text: [["=", "="], ["!=", "≠"], ["has", "contains"], ["starts", "starts with"], ...NONE],
  time: [[">=", "from"], ["<", "before"], ...NONE],
  date: [...ORDER, ...NONE],
  boolean: [["true", "is true"], ["false", "is false"], ...NONE],
  other: NONE,
};

export const operators = (type) => OPERATORS[family(type)];
export const takesValue = (operator) => !["null", "some", "true", "false"].includes(operator);

const name = (text) => `"${text.replaceAll('"', '""')}"`;
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const likeable = (text) => text.replace(/[\\%_]/g, (sign) => `\\${sign}`);

/** The SQL of `{column, operator, value}`; throws a line that says what is wrong with its value. */
export function sql({ column, operator, value }, type) {
  const own = name(column);
  switch (operator) {
    case "null": return `${own} IS NULL`;
    case "some": return `${own} IS NOT NULL`;
    case "true": return own;
    case "false": return `NOT ${own}`;
  }
  const text = (value ?? "").trim();
  switch (family(type)) {
    case "number":
      if (!LITERAL.test(text)) throw new Error(`${column} is a number, and “${text}” is none`);
      return `${own} ${operator} ${text}`;
    case "time": {
      const moment = new Date(text);
      if (Number.isNaN(moment.getTime())) throw new Error(`${column}: choose a time`);
      return `${own} ${operator} TIMESTAMPTZ ${quoted(moment.toISOString())}`;
    }
    case "date":
      if (!/^\d{4}-\d\d-\d\d$/.test(text)) throw new Error(`${column}: choose a day`);
      return `${own} ${operator} DATE ${quoted(text)}`;
  }
  if (operator === "has") return `${own} ILIKE ${quoted(`%${likeable(value)}%`)} ESCAPE '\\'`;
  if (operator === "starts") return `${own} LIKE ${quoted(`${likeable(value)}%`)} ESCAPE '\\'`;
  return `${own} ${operator} ${quoted(value ?? "")}`;
}

/** All conditions and a free one, as one predicate; "" for none. */
export function predicate(conditions, types, free = "") {
  const all = conditions.map((one) => sql(one, types.get(one.column)));
  if (free.trim()) all.push(all.length ? `(${free.trim()})` : free.trim());
  return all.join(" AND ");
}

/** Conditions in an address: three parts each, `c=vid:>:7`. */
export const written = ({ column, operator, value }) => [column, operator, value ?? ""].map((part) => part.replace(/[%:]/g, encodeURIComponent)).join(":");

export function read(text) {
  try {
    const [column, operator, value] = text.split(":").map(decodeURIComponent);
    return operator === undefined ? null : { column, operator, value: value ?? "" };
  } catch {
    return null;
  }
}

/** A moment as an input of type datetime-local has it, in the viewer's zone; and back. */
export function local(iso) {
  const moment = new Date(iso);
  if (!iso || Number.isNaN(moment.getTime())) return "";
  const two = (n, size = 2) => String(n).padStart(size, "0");
  return `${two(moment.getFullYear(), 4)}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}T${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
}

export function utc(text) {
  const moment = new Date(text);
  return text && !Number.isNaN(moment.getTime()) ? moment.toISOString().replace(".000Z", "Z") : null;
}
