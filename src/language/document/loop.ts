import { LoopBody, LoopCursor, LoopFrame, LoopPolicy, LoopSpec, Tolerance } from "../../schema/documents/document.ts";
import type { Cursor, Loop } from "../../schema/words/playbook.ts";
import { field, firstField, isMap, type Place, textOf } from "./source/place.ts";
import { checkCount, checkKeys, legacy, noteTemplate, noteText, type Reading } from "./source/reading.ts";
import { readKindName } from "./task.ts";

/** Reads `loop` of a step (language document, section 6). */
export function readLoop(reading: Reading, place: Place | undefined): Loop | undefined {
  if (!isMap(place)) return undefined;
  checkKeys(reading, place, LoopBody);
  const spec = field(place, "spec");
  checkKeys(reading, spec, LoopSpec);
  const collection = readCollection(reading, place);
  const cursor = readCursor(reading, field(place, "cursor"), field(spec, "frame"));
  const mode = readMode(reading, place, spec);
  if (cursor === undefined && (collection === undefined || mode === "cursor")) {
    const what = mode === "cursor" ? "loop of mode `cursor` has no `cursor`" : "loop has neither `in` nor `cursor`";
    reading.report("loop-without-collection", place, `the ${what}`, mode === "cursor" ? undefined : "add `in: …`");
  }
  const maxInFlight = field(spec, "max_in_flight");
  noteTemplate(reading, maxInFlight);
  checkCount(reading, maxInFlight);
  checkKeys(reading, field(spec, "policy"), LoopPolicy);
  const onError = readOnError(reading, field(spec, "on_error"));
  return {
    ...(cursor === undefined ? { in: collection?.value ?? null } : { cursor }),
    iterator: textOf(firstField(place, "iterator", "element")) ?? "item",
    mode: cursor === undefined ? mode : "cursor",
    ...(maxInFlight === undefined ? {} : { maxInFlight: maxInFlight.value }),
    exec: readExec(field(field(spec, "policy"), "exec")?.value),
    ...(onError === undefined ? {} : { onError }),
  };
}

function readExec(value: unknown): Loop["exec"] {
  return value === "local" || value === "distributed" ? value : "auto";
}

/** `in`, or `collection` of earlier versions. */
function readCollection(reading: Reading, loop: Place): Place | undefined {
  const older = field(loop, "collection");
  if (older !== undefined) legacy(reading, older, "`collection`", "`in`");
  const collection = field(loop, "in") ?? older;
  noteTemplate(reading, collection);
  return collection;
}

function readMode(reading: Reading, loop: Place, spec: Place | undefined): Loop["mode"] {
  const older = field(loop, "mode");
  if (older !== undefined) legacy(reading, older, "`loop.mode`", "`loop.spec.mode`");
  const mode = textOf(field(spec, "mode") ?? older);
  if (mode === "parallel" || mode === "async") return "parallel";
  return mode === "cursor" ? "cursor" : "sequential";
}

function readCursor(reading: Reading, place: Place | undefined, frame: Place | undefined): Cursor | undefined {
  checkKeys(reading, frame, LoopFrame);
  if (!isMap(place)) return undefined;
  checkKeys(reading, place, LoopCursor);
  const auth = field(place, "auth");
  const claim = field(place, "claim");
  const maxSeconds = field(frame, "max_seconds");
  const maxBytes = field(frame, "max_bytes");
  const value = (key: string, byDefault: number) => field(frame, key)?.value ?? byDefault;
  noteTemplate(reading, auth);
  for (const templated of [claim, frame]) noteText(reading, templated);
  return {
    kind: readCursorKind(reading, field(place, "kind")),
    ...(auth === undefined ? {} : { auth: auth.value }),
    claim: claim?.value ?? "",
    maxRows: value("max_rows", 1),
    ...(maxSeconds === undefined ? {} : { maxSeconds: maxSeconds.value }),
    ...(maxBytes === undefined ? {} : { maxBytes: maxBytes.value }),
    leaseSeconds: value("lease_seconds", 120),
    heartbeatSeconds: value("heartbeat_seconds", 30),
    rowConcurrency: value("row_concurrency", 1),
    process: field(frame, "process")?.value === "frame" ? "frame" : "row",
  };
}

function readCursorKind(reading: Reading, place: Place | undefined): string {
  const written = textOf(place);
  return written === undefined ? "" : readKindName(reading, place, written);
}

/** `stop`, `continue`, a count, or a share: `5%`, or a fraction below 1. */
function readOnError(reading: Reading, place: Place | undefined): Loop["onError"] {
  checkKeys(reading, place, Tolerance);
  const word = textOf(place);
  if (word === "stop" || word === "continue") return word;
  const tolerate = field(place, "tolerate");
  if (tolerate === undefined) return undefined;
  const [, digits, percent] = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(String(tolerate.value)) ?? [];
  if (digits === undefined) {
    const hint = "write a count (`3`) or a share (`5%`)";
    reading.report("wrong-value", tolerate, `\`tolerate\` cannot be \`${String(tolerate.value)}\``, hint);
    return undefined;
  }
  const amount = Number(digits);
  if (percent === "%") return { toleratePercent: amount };
  return amount > 0 && amount < 1 ? { toleratePercent: amount * 100 } : { tolerate: amount };
}
