import type { DuckDBType, DuckDBValue } from "@duckdb/node-api";
import { type Json, type JsonObject, setOwn } from "../../schema/words/json.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";
import type { Duckdb } from "./driver.ts";

/**
 * A value of a row as JSON: whole numbers of any width are numbers while they are exact, else text with all digits; decimals
 * are numbers; times are ISO texts, in UTC if they have a zone; blobs are base64; lists are lists; structs and maps with text
 * keys are maps, other maps a list of `{key, value}`; all other types are DuckDB's own text.
 */
export function duckdbJson(driver: Duckdb, value: DuckDBValue, type: DuckDBType): Json {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return wholeNumber(value);
  if (typeof value === "string") return isJsonType(type) ? parseJsonKeepingDigits(value) : value;
  const inner = (item: DuckDBValue, of: DuckDBType) => duckdbJson(driver, item, of);
  if (value instanceof driver.DuckDBListValue || value instanceof driver.DuckDBArrayValue) {
    const { valueType } = type as { valueType: DuckDBType } & DuckDBType;
    return value.items.map((item) => inner(item, valueType));
  }
  if (value instanceof driver.DuckDBStructValue) return structJson(value.entries, type, inner);
  if (value instanceof driver.DuckDBMapValue) {
    const { keyType, valueType } = type as { keyType: DuckDBType; valueType: DuckDBType } & DuckDBType;
    return mapJson(value.entries.map((entry) => [inner(entry.key, keyType), inner(entry.value, valueType)]));
  }
  if (value instanceof driver.DuckDBUnionValue) {
    const { memberTags, memberTypes } = type as { memberTags: string[]; memberTypes: DuckDBType[] } & DuckDBType;
    return inner(value.value, memberTypes[memberTags.indexOf(value.tag)]!);
  }
  if (value instanceof driver.DuckDBDecimalValue) return Number(value.toString());
  if (value instanceof driver.DuckDBBlobValue) return Buffer.from(value.bytes).toString("base64");
  if (value instanceof driver.DuckDBTimestampTZValue) {
    return isoText(new driver.DuckDBTimestampValue(value.micros).toString(), "Z");
  }
  return isoText(String(value), "");
}

/**
 * A parameter as the driver takes it. Lists of one kind of plain values are lists; maps and mixed lists are JSON text,
 * which fits a JSON column and a cast.
 */
export function duckdbParameter(driver: Duckdb, value: Json): DuckDBValue {
  if (Array.isArray(value)) {
    const kinds = new Set(value.filter((item) => item !== null).map((item) => typeof item));
    const isPlain = kinds.size === 1 && !kinds.has("object") && value[0] !== null;
    return isPlain && value.every((item) => sameWidth(item, value[0]!))
      ? driver.listValue(value as DuckDBValue[])
      : JSON.stringify(value);
  }
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

/** The driver takes the type of a list from its first item: a fraction after a whole number would be cut. */
function sameWidth(item: Json, first: Json): boolean {
  if (typeof item !== "number" || typeof first !== "number") return true;
  return isInt32(first) ? isInt32(item) : Number.isInteger(first) ? Number.isSafeInteger(item) : true;
}

function isInt32(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < 2 ** 31;
}

function wholeNumber(value: bigint): Json {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

function isJsonType(type: DuckDBType): boolean {
  return type.alias === "JSON";
}

function structJson(
  entries: Readonly<Record<string, DuckDBValue>>,
  type: DuckDBType,
  inner: (value: DuckDBValue, type: DuckDBType) => Json,
): JsonObject {
  const { entryNames, entryTypes } = type as { entryNames: string[]; entryTypes: DuckDBType[] } & DuckDBType;
  const object: JsonObject = {};
  for (const [index, name] of entryNames.entries())
    setOwn(object, name, inner(entries[name] ?? null, entryTypes[index]!));
  return object;
}

function mapJson(entries: [Json, Json][]): Json {
  if (!entries.every(([key]) => typeof key === "string")) return entries.map(([key, value]) => ({ key, value }));
  const object: JsonObject = {};
  for (const [key, value] of entries) setOwn(object, String(key), value);
  return object;
}

const TIMESTAMP = /^\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$/;

/** `2024-01-02 03:04:05` → `2024-01-02T03:04:05`; infinity and years before Christ stay as they are. */
function isoText(text: string, zone: string): string {
  return TIMESTAMP.test(text) ? text.replace(" ", "T") + zone : text;
}
