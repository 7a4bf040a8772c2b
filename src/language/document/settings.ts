import { COMMAND_KEYS, HTTP_METHODS, KIND_NEEDS, KIND_OPTIONS } from "../../schema/documents/kind-settings.ts";
import type { Json } from "../../schema/words/json.ts";
import { isSlip } from "../words/nearest.ts";
import { didYouMean } from "./source/hints.ts";
import { field, isMap, type Place, textOf } from "./source/place.ts";
import type { Reading } from "./source/reading.ts";
import { QUOTE_LINE } from "./source/syntax-slips.ts";

/**
 * Reports what makes the task fail in every run: a missing key that its kind needs, and a literal that a key does not accept.
 * These are warnings: the task fails with its own message, it may never be reached, and a rule may handle the failure.
 */
export function checkSettings(reading: Reading, task: Place, kind: string, fields: ReadonlyMap<string, Place>): void {
  const map: Place = { ...task, fields };
  const isPut = kind === "artifact" && literal(field(map, "action")?.value)?.toLowerCase() === "put";
  const needs = isPut ? [["file"], ["content", "content_b64"]] : ofKind(KIND_NEEDS, kind);
  for (const keys of needs ?? []) checkNeed(reading, task, kind, map, keys);
  if (kind === "mcp" && field(map, "tool") === undefined && textOf(field(map, "method")) === "tools/call") {
    incomplete(reading, task, "the mcp task calls a tool and has no `tool`", "`method: tools/list` shows them");
  }
  const operation = literal((field(map, "operation") ?? field(map, "action"))?.value)?.toLowerCase() ?? "";
  if (kind === "nats" && /^(kv_)?(get|put|delete)$/.test(operation) && field(map, "key") === undefined) {
    incomplete(reading, task, `the nats task has no \`key\`, which ${operation} needs`, "add `key: …`");
  }
  checkOptions(reading, map, kind);
  for (const key of ofKind(COMMAND_KEYS, kind) ?? []) checkCommands(reading, field(map, key));
}

/** A kind may be called like a field that every object has. */
function ofKind<T>(table: Readonly<Record<string, T>>, kind: string): T | undefined {
  return Object.hasOwn(table, kind) ? table[kind] : undefined;
}

function checkNeed(reading: Reading, task: Place, kind: string, map: Place, keys: readonly string[]): void {
  const given = keys.map((key) => field(map, key)).filter((place) => place !== undefined);
  const [first] = given;
  const name = keys[0] ?? "";
  if (first === undefined) {
    // A reference may come with the inputs.
    if (kind === "artifact" && (field(map, "input") !== undefined || field(map, "args") !== undefined)) return;
    const others = keys.slice(1, 3).map((key) => `\`${key}\``);
    const hint = `add \`${name}: …\`${others.length === 0 ? "" : ` (or ${others.join(", ")})`}`;
    incomplete(reading, task, `the ${kind} task has no \`${name}\`: it fails when it is reached`, hint);
  } else if (given.every((place) => textOf(place)?.trim() === "")) {
    const isBlock = first.style === "literal" || first.style === "folded";
    const message = `\`${first.key}\` is empty${isBlock ? "; indent its lines deeper" : ""}`;
    incomplete(reading, first, message, isBlock ? `its lines stand right of \`${first.key}\`` : undefined);
  }
}

function incomplete(reading: Reading, place: Place, message: string, hint: string | undefined): void {
  reading.report("incomplete-task", place, message, hint);
}

function checkOptions(reading: Reading, map: Place, kind: string): void {
  for (const [path, known] of Object.entries(ofKind(KIND_OPTIONS, kind) ?? {})) {
    const place = at(map, path);
    const written = literal(place?.value);
    if (place === undefined || written === undefined || known.includes(written.toLowerCase())) continue;
    const shown = known.slice(0, SHOWN_MAX).join(", ");
    const message = `\`${path}\` of the ${kind} task cannot be \`${written}\``;
    reading.report("wrong-option", place, message, () => didYouMean(written, known) ?? `it is one of ${shown}`);
  }
  const method = kind === "http" ? field(map, "method") : undefined;
  const word = literal(method?.value)?.trim().toUpperCase();
  if (method === undefined || word === undefined || HTTP_METHODS.includes(word)) return;
  const meant = HTTP_METHODS.find((known) => isSlip(word, known));
  if (meant === undefined) return;
  reading.report("wrong-option", method, `\`${word}\` is no usual HTTP method`, `did you mean \`${meant}\`?`);
}

const SHOWN_MAX = 8;

function at(map: Place, path: string): Place | undefined {
  let place: Place | undefined = map;
  for (const key of path.split(".")) place = isMap(place) ? field(place, key) : undefined;
  return place;
}

/** The value as text, where it is no template and no list or map. */
function literal(value: Json | undefined): string | undefined {
  if (value === undefined || value === null || typeof value === "object") return undefined;
  const text = String(value);
  return text.includes("{{") || text.includes("{%") ? undefined : text;
}

/** YAML reads `- echo "A: b"` as a map, which is certainly not meant as a command. */
function checkCommands(reading: Reading, place: Place | undefined): void {
  const items = place === undefined ? [] : [place, ...place.items];
  for (const item of items) {
    // `script: {uri, source}` is a map that is meant.
    if (!isMap(item) || item.fields.size !== 1 || item.key === "script") continue;
    reading.report("text-as-map", item, `${item === place ? "the command" : "this command"} is no text: ${QUOTE_LINE}`);
  }
}
