import type { Json } from "../../schema/words/json.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";

/** A column as the warehouse describes it (`resultSetMetaData.rowType`). */
export interface SnowflakeColumn {
  name: string;
  /** `fixed`, `real`, `text`, `boolean`, `date`, `timestamp_tz`, …, in lower case. */
  type: string;
  scale: number;
}

/**
 * A cell of a result in format `jsonv2`, where every value is text: dates are days and times are seconds since 1970,
 * binary is hexadecimal, what has a structure is JSON. Numbers are numbers while they are exact; times are ISO texts, in
 * UTC where they have a zone; binary is base64.
 */
export function snowflakeJson(cell: string | null, { type, scale }: SnowflakeColumn): Json {
  if (cell === null) return null;
  switch (type) {
    case "fixed":
    case "number":
      return wholeOrDecimal(cell, scale);
    case "real":
    case "float":
    case "double":
    case "decfloat":
      return finite(cell);
    case "boolean":
      return cell === "true" || cell === "1" || cell === "TRUE";
    case "date":
      return isoDate(cell);
    case "time":
      return isoTime(cell, (iso, fraction) => iso.slice(11, 19) + fraction);
    case "timestamp_ntz":
      return isoTime(cell, (iso, fraction) => iso.slice(0, 19) + fraction);
    case "timestamp_ltz":
    case "timestamp_tz":
      // With a zone the moment is in UTC already; the zone's own offset follows after a blank.
      return isoTime(cell.split(" ")[0]!, (iso, fraction) => `${iso.slice(0, 19)}${fraction}Z`);
    case "binary":
      return Buffer.from(cell, "hex").toString("base64");
    case "variant":
    case "object":
    case "array":
    case "map":
      return structured(cell);
    default:
      return cell;
  }
}

/** A parameter as the warehouse binds it: its type and its value as text. */
export function snowflakeBinding(value: Json): { type: string; value: string | null } {
  if (value === null) return { type: "TEXT", value: null };
  if (typeof value === "boolean") return { type: "BOOLEAN", value: String(value) };
  if (typeof value === "number") return { type: Number.isSafeInteger(value) ? "FIXED" : "REAL", value: String(value) };
  return { type: "TEXT", value: typeof value === "string" ? value : JSON.stringify(value) };
}

function wholeOrDecimal(cell: string, scale: number): Json {
  const number = Number(cell);
  if (scale > 0) return Number.isFinite(number) ? number : cell;
  return Number.isSafeInteger(number) ? number : cell;
}

function finite(cell: string): Json {
  const number = Number(cell);
  return Number.isFinite(number) && cell.trim() !== "" ? number : cell;
}

function isoDate(cell: string): Json {
  const date = new Date(Number(cell) * 86_400_000);
  return Number.isNaN(date.getTime()) ? cell : date.toISOString().slice(0, 10);
}

/** Nine digits of a second do not fit into a Date: the fraction is taken from the text. */
function isoTime(cell: string, write: (iso: string, fraction: string) => string): Json {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(cell);
  if (match === null) return cell;
  const [, sign, whole, digits = ""] = match;
  const nanos = BigInt(digits.padEnd(9, "0").slice(0, 9)) + BigInt(whole!) * 1_000_000_000n;
  const total = sign === "-" ? -nanos : nanos;
  const fraction = ((total % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const date = new Date(Number((total - fraction) / 1_000_000n));
  if (Number.isNaN(date.getTime())) return cell;
  const shown = fraction.toString().padStart(9, "0").replace(/0+$/, "");
  return write(date.toISOString(), shown === "" ? "" : `.${shown}`);
}

/** A variant that holds a bare text may come without quotes. */
function structured(cell: string): Json {
  try {
    return parseJsonKeepingDigits(cell);
  } catch {
    return cell;
  }
}
