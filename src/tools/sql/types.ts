import type postgres from "postgres";
import type { Json } from "../../schema/words/json.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";

/** How values of a PostgreSQL session become JSON, and parameters become text (language document, section 8). */
export const SQL_TYPES: Record<string, postgres.PostgresType> = {
  /** int8: a number while it is exact, else text with all digits. */
  int8: { to: 20, from: [20], serialize: String, parse: integer },
  numeric: { to: 1700, from: [1700], serialize: String, parse: decimal },
  /** JSON has no NaN and no infinity: they stay text. */
  float: { to: 701, from: [700, 701], serialize: String, parse: decimal },
  /** The driver's own writes everything but `true` as false, the text "true" among it; the server reads that, or refuses. */
  bool: { to: 16, from: [16], serialize: String, parse: (text: string) => text === "t" },
  date: { to: 1082, from: [1082], serialize: String, parse: String },
  timestamp: { to: 1114, from: [1114], serialize: String, parse: isoTimestamp },
  timestamptz: { to: 1184, from: [1184], serialize: String, parse: isoTimestampUtc },
  json: { to: 3802, from: [114, 3802], serialize: jsonText, parse: parseJsonKeepingDigits },
  /** Base64 out; in, PostgreSQL's own text form (`\x…`), so that nothing is guessed. */
  bytea: { to: 17, from: [17], serialize: String, parse: base64 },
};

/**
 * A parameter as the driver takes it: its type is left to the server, which knows the column. A map becomes JSON text; a
 * list stays a list, which is an array for an array column and JSON for every other.
 */
export function bindParameter(sql: postgres.Sql, value: Json): postgres.Parameter {
  return sql.typed(parameterValue(value) as postgres.SerializableParameter, 0) as unknown as postgres.Parameter;
}

function parameterValue(value: Json): unknown {
  if (Array.isArray(value)) {
    // The driver writes a value whose column is not an array with `'' + value`: for a list that would be "1,2".
    return Object.defineProperty([...value], "toString", { value: () => JSON.stringify(value) });
  }
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

/** Text for a JSON column is JSON already, as with psql; everything else is written as JSON. */
function jsonText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function integer(text: string): Json {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}

function decimal(text: string): Json {
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function base64(text: string): Json {
  return text.startsWith("\\x") ? Buffer.from(text.slice(2), "hex").toString("base64") : text;
}

const TIMESTAMP = /^(\d{4,})-(\d\d)-(\d\d) (\d\d:\d\d:\d\d)(\.\d+)?(?:([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?$/;

/** `2024-01-02 03:04:05.678` → `2024-01-02T03:04:05.678`; what has no such form (`infinity`, BC) stays as it is. */
function isoTimestamp(text: string): Json {
  return TIMESTAMP.test(text) ? text.replace(" ", "T") : text;
}

/** The same in UTC, with `Z`. Microseconds are kept, which a Date would cut. */
function isoTimestampUtc(text: string): Json {
  const match = TIMESTAMP.exec(text);
  if (match === null) return text;
  const [, year, month, day, time, fraction = "", sign, hours = "0", minutes = "0", seconds = "0"] = match;
  const local = Date.parse(`${year}-${month}-${day}T${time}Z`);
  if (Number.isNaN(local)) return text;
  const offsetMs = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  const utc = new Date(sign === "-" ? local + offsetMs : local - offsetMs).toISOString();
  return `${utc.slice(0, utc.indexOf("."))}${fraction}Z`;
}
