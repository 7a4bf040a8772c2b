import { LegacyRetry, TaskBody, TaskPolicy, TaskSpec } from "../../schema/documents/document-task.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { PARSED_ONLY_KINDS, type PolicyRule, RUNNABLE_KINDS, type Task } from "../../schema/words/playbook.ts";
import {
  canonicalKind,
  KIND_KEYS,
  KNOWN_KINDS,
  TRANSFER_SOURCE,
  TRANSFER_TARGET,
} from "../../schema/words/task-kinds.ts";
import { isSlip } from "../words/nearest.ts";
import { readAssignments, readInputs } from "./assignments.ts";
import { readDuration, readTimeout, readWaitTimeout } from "./durations.ts";
import { readResult } from "./result-storage.ts";
import { readBackoff, readPolicy } from "./rules.ts";
import { checkSettings } from "./settings.ts";
import { checkShape } from "./shape.ts";
import { didYouMean } from "./source/hints.ts";
import { field, firstField, isMap, type Place, textOf } from "./source/place.ts";
import {
  checkCount,
  checkKey,
  checkKeys,
  checkRange,
  legacy,
  noteCondition,
  noteTemplate,
  noteText,
  positionOf,
  type Reading,
} from "./source/reading.ts";
import { checkWait } from "./wait.ts";

/** A task as written in the document, before its keys are read. */
export interface TaskDraft {
  label: string;
  /** Where the task stands: with its label, where that is the key above it. */
  place: Place;
  /** Offset of the label, or of the task where it has none. */
  at: number;
  /** Its keys: those of its map, and those of `spec` that stand for task keys. */
  fields: ReadonlyMap<string, Place>;
  /** True when its keys are not all in one map of the document. */
  assembled: boolean;
  /** The task's own `spec`. */
  ownSpec?: Place | undefined;
  /** Where the task's keys stand on the step: the step's `spec`, of which only `policy.rules` is the task's. */
  stepSpec?: Place | undefined;
}

const SPEC_OWN_KEYS: readonly string[] = Object.keys(TaskSpec.entries);
const COMMON_KEYS: readonly string[] = Object.keys(TaskBody.entries);

/** Keys of a task with `spec.<k>` in the place of an absent `<k>` (language document, section 3). */
export function hoistSpec(fields: ReadonlyMap<string, Place>, spec: Place | undefined): ReadonlyMap<string, Place> {
  const hoisted = new Map(fields);
  for (const [key, value] of spec?.fields ?? []) {
    const present = hoisted.get(key);
    if (!SPEC_OWN_KEYS.includes(key) && (present === undefined || present.value === null)) hoisted.set(key, value);
  }
  return hoisted;
}

/** One task. `labels` are all tasks of its step in order, this one at `index`. */
export function readTask(reading: Reading, draft: TaskDraft, labels: readonly string[], index: number): Task {
  const { fields, ownSpec: spec } = draft;
  const get = (...keys: string[]) => keys.map((key) => present(fields, key)).find((place) => place !== undefined);
  const kind = readKind(reading, get("kind"));
  checkTaskKeys(reading, draft, kind);
  if (draft.assembled) checkShape(assembled(draft), TaskBody, reading.report);
  if (kind === "workbook") {
    const tool = get("name") ?? get("task");
    reading.workbookNames.push({
      place: tool ?? draft.place,
      name: tool === undefined ? draft.label : (textOf(tool) ?? ""),
    });
  }
  const called = kind === "playbook" ? get("path") : undefined;
  if (called !== undefined) reading.calls.push({ place: called, name: textOf(called) ?? "" });
  checkSettings(reading, draft.place, kind, fields);
  if (kind === "wait") checkWait(reading, draft.place, fields);
  checkKeys(reading, field(spec, "policy"), TaskPolicy);
  const rules = field(field(spec ?? draft.stepSpec, "policy"), "rules");
  const ownAuth = get("auth", "credential");
  noteTemplate(reading, ownAuth);
  const auth = kind === "transfer" ? transferAuth(ownAuth, get("source"), get("target")) : ownAuth?.value;
  const timeoutMs =
    readDuration(reading, get("timeout_ms"), 1) ??
    (kind === "wait" ? readWaitTimeout : readTimeout)(
      reading,
      get("timeout", "timeout_seconds") ?? field(spec, "timeout"),
    );
  refuseForms(reading, kind, get("timeout"), get("args"));
  const endpoint = kind === "http" ? get("endpoint") : undefined;
  if (endpoint !== undefined) legacy(reading, endpoint, "`endpoint` of an http task", "`url: …`");
  const payload = kind === "playbook" ? get("payload") : undefined;
  const codeLine = readCodeLine(reading, fields);
  const waitWhen = kind === "wait" ? get("when") : undefined;
  noteCondition(reading, waitWhen);
  const waitNotify = kind === "wait" ? field(get("approval"), "notify") : undefined;
  return {
    label: draft.label,
    kind,
    config: readConfig(reading, draft, kind, isMap(payload)),
    input: readInputs(reading, payload, get("args"), get("input")),
    ...(auth === undefined ? {} : { auth }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    policy: withRetry(reading, readPolicy(reading, rules, labels, index), get("retry")),
    set: readAssignments(reading, get("set"), "local"),
    result: readResult(reading, [field(spec, "result"), get("output")], get("output_select")),
    position: reading.locate(draft.at),
    ...(waitWhen === undefined ? {} : { waitWhen: waitWhen.value }),
    ...(waitNotify === undefined ? {} : { waitNotify: waitNotify.value }),
    ...(codeLine === undefined ? {} : { codeLine }),
  };
}

/** Forms that only tasks of some kinds have. */
function refuseForms(reading: Reading, kind: string, timeout: Place | undefined, args: Place | undefined): void {
  if (isMap(timeout) && kind !== "http") {
    reading.report("wrong-type", timeout, "`timeout` must be a number or text, not a map", "write seconds, e.g. 30");
  }
  if (Array.isArray(args?.value) && own(KIND_KEYS, kind) !== undefined) {
    reading.report("wrong-type", args, "`args` must be a map, not a list", "inputs have names: `{name: value}`");
  }
}

/** The credentials of a transfer's source and target, by alias; the task's own replaces a missing one. */
function transferAuth(
  shared: Place | undefined,
  source: Place | undefined,
  target: Place | undefined,
): Json | undefined {
  const auth: JsonObject = {};
  for (const [alias, place] of [
    [TRANSFER_SOURCE, source],
    [TRANSFER_TARGET, target],
  ] as const) {
    const named = firstField(place, "auth", "credential") ?? shared;
    if (named !== undefined) auth[alias] = named.value;
  }
  return Object.keys(auth).length === 0 ? undefined : auth;
}

/** What is a credential is shown nowhere, as with every other task. */
function withoutAuth(value: Json): Json {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== "auth" && key !== "credential"));
}

function withoutNotify(value: Json): Json {
  if (!isJsonObject(value)) return value;
  const { notify: _, ...rest } = value;
  return rest;
}

/** The task as if its keys stood together: those from the step and from `spec` have not been checked with the document. */
function assembled({ place, fields, stepSpec }: TaskDraft): Place {
  const all = new Map(fields);
  if (stepSpec !== undefined) all.set("spec", stepSpec);
  const value = Object.fromEntries([...all].map(([key, entry]) => [key, entry.value]));
  return { ...place, value, fields: all };
}

function present(fields: ReadonlyMap<string, Place>, key: string): Place | undefined {
  const place = fields.get(key);
  return place === undefined || place.value === null ? undefined : place;
}

/** The canonical kind. Unknown kinds stay as written: they fail when they are run. */
function readKind(reading: Reading, place: Place | undefined): string {
  const written = textOf(place) ?? "noop";
  if (written === "sink") {
    const hint = "save with an ordinary task at the end of the list, e.g. `kind: sqldb`";
    reading.report("removed-form", place, "kind `sink` is no longer part of the language", hint);
    return written;
  }
  return readKindName(reading, place, written);
}

/** The canonical kind that a text stands for. */
export function readKindName(reading: Reading, place: Place | undefined, written: string): string {
  const kind = canonicalKind(written);
  if (RUNNABLE_KINDS.some((known) => known === kind)) return kind;
  if (PARSED_ONLY_KINDS.some((known) => known === kind)) {
    const message = `this program has no runner for kind \`${written}\`: the task fails when it is reached`;
    reading.report("kind-without-runner", place, message);
    return kind;
  }
  const meant = KNOWN_KINDS.find((known) => isSlip(written, known));
  const code = meant === undefined ? "unknown-kind" : "misspelled-kind";
  const hint = () => didYouMean(written, meant === undefined ? KNOWN_KINDS : [meant]);
  reading.report(code, place, `nothing runs kind \`${written}\``, hint);
  return kind;
}

function checkTaskKeys(reading: Reading, draft: TaskDraft, kind: string): void {
  const kindKeys = textOf(draft.fields.get("kind")) === undefined ? undefined : own(KIND_KEYS, kind);
  const known = [...COMMON_KEYS, ...Object.keys(kindKeys ?? {})];
  for (const [key, entry] of draft.fields) {
    // The executor of an unknown kind is unknown, and so are its keys; only removed keys are refused.
    if (kindKeys !== undefined) checkKey(reading, key, entry, known);
    else if (key === "eval" || key === "expr") checkKey(reading, key, entry, []);
  }
}

/** Keys of every kind whose texts are read by this program alone. */
const OUR_KEYS: ReadonlySet<string> = new Set(["url", "endpoint", "params"]);

/** The kind's own keys: all that have no place elsewhere in a {@link Task}. */
function readConfig(reading: Reading, draft: TaskDraft, kind: string, payloadIsInput: boolean): JsonObject {
  const config: JsonObject = {};
  for (const [key, place] of draft.fields) {
    const isList = key === "args" && Array.isArray(place.value);
    const own = (kind === "workbook" && key === "name") || isList || !COMMON_KEYS.includes(key);
    if (!own || (key === "payload" && payloadIsInput) || (kind === "wait" && key === "when")) continue;
    // The playbook that tells people is called by the server, when there is an approval to tell of.
    const isApproval = kind === "wait" && key === "approval";
    const holdsAuth = kind === "transfer" && (key === "source" || key === "target");
    const parts = holdsAuth && isMap(place) ? place.fields : new Map([[key, place]]);
    for (const [name, part] of parts) {
      if (OUR_KEYS.has(name)) noteTemplate(reading, part);
      else noteText(reading, part);
    }
    config[key] = holdsAuth ? withoutAuth(place.value) : isApproval ? withoutNotify(place.value) : place.value;
  }
  return config;
}

/** Line of the first line of the code: of a block (`code: |`) the line after the key. */
function readCodeLine(reading: Reading, fields: ReadonlyMap<string, Place>): number | undefined {
  const script = fields.get("script");
  const candidates = [fields.get("code"), field(script, "code"), field(field(script, "source"), "code")];
  const code = candidates.find((place) => typeof place?.value === "string");
  if (code === undefined) return undefined;
  const { line } = positionOf(reading, code);
  return code.style === "literal" || code.style === "folded" ? line + 1 : line;
}

/** Adds the rule that a legacy `retry` stands for: before a rule without condition, which would hide it. */
function withRetry(reading: Reading, policy: PolicyRule[], retry: Place | undefined): PolicyRule[] {
  if (retry === undefined || retry.value === false) return policy;
  legacy(reading, retry, "`retry`", "`spec.policy.rules` with `then: {do: retry, attempts: …}`");
  checkKeys(reading, retry, LegacyRetry);
  const attempts = typeof retry.value === "number" ? retry : firstField(retry, "max_attempts", "attempts");
  const written = field(retry, "backoff");
  // A number is a delay that does not grow. Where `delay` is given too, that one counts.
  const backoff = typeof written?.value === "number" ? "fixed" : readBackoff(written);
  const fixed = typeof written?.value === "number" ? written : undefined;
  const delay = firstField(retry, "delay", "initial_delay") ?? fixed;
  noteTemplate(reading, attempts);
  noteTemplate(reading, delay);
  checkCount(reading, attempts);
  checkRange(reading, delay);
  const rule: PolicyRule = {
    when: "{{ output.status == 'error' }}",
    do: "retry",
    ...(attempts === undefined ? {} : { attempts: attempts.value }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(delay === undefined ? {} : { delay: delay.value }),
    set: [],
  };
  const otherwise = policy.findIndex((candidate) => !Object.hasOwn(candidate, "when"));
  return policy.toSpliced(otherwise === -1 ? policy.length : otherwise, 0, rule);
}
