import type { ResumePoint, Write } from "../../schema/words/command.ts";
import type { FlowEvent, RerunRef, RestoredStep, TaskLog, TaskResult } from "../../schema/words/event.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { ResultRef, StoredResult } from "../../schema/words/result.ts";
import { mapValues } from "./map-json.ts";

/** What to do with the parts of an event. Each function returns its argument if nothing changes. */
export interface EventSealing {
  /** For values that other steps read: secrets are sealed. */
  seal(value: Json): Json;
  /** For text that people read and no step passes on: secrets are hidden. */
  hide(text: string): string;
  hideIn(value: Json): Json;
  /** For texts that were cut off. */
  hideCut(text: string): string;
}

/** The event without secrets in any of its values and messages. Names of steps, tasks and variables stay unchanged. */
export function sealEvent(event: FlowEvent, sealing: EventSealing): FlowEvent {
  const fields = event as unknown as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    const sealed = value === undefined ? undefined : FIELDS[key]?.(value as never, sealing);
    if (sealed === undefined || sealed === value) continue;
    copy ??= { ...fields };
    copy[key] = sealed;
  }
  return (copy ?? fields) as unknown as FlowEvent;
}

/** Fields of events that hold output of templates and tools. */
const FIELDS: Readonly<Record<string, (value: never, sealing: EventSealing) => unknown>> = {
  result: (result: StoredResult, sealing) => sealResult(result, sealing),
  set: (set: Write[], { seal }) => mapList(set, (write) => changed(write, 1, seal(write[1]))),
  results: (results: TaskResult[], sealing) =>
    mapList(results, (ended) => changed(ended, 1, sealResult(ended[1], sealing))),
  rows: (rows: Json[], { seal }) => seal(rows),
  items: (items: Json[], { seal }) => seal(items),
  input: (input: JsonObject, { seal }) => seal(input),
  workload: (workload: JsonObject, { seal }) => seal(workload),
  // Where a parked command goes on.
  resume: (resume: ResumePoint, { seal }) =>
    resume.pipeline === undefined
      ? resume
      : changed(resume, "pipeline", seal(resume.pipeline as unknown as Json) as never),
  // How a rerun begins.
  rerun: (rerun: RerunRef, { seal }) => seal(rerun as unknown as Json),
  vars: (vars: JsonObject, { seal }) => seal(vars),
  steps: (steps: Record<string, RestoredStep>, { seal }) => seal(steps as unknown as Json),
  next: (next: { input: JsonObject }[], { seal }) =>
    mapList(next, (fired) => changed(fired, "input", seal(fired.input) as JsonObject)),
  arcs: (arcs: { error?: string }[], { hide }) =>
    mapList(arcs, (arc) => (arc.error === undefined ? arc : changed(arc, "error", hide(arc.error)))),
  error: (error: TaskError, sealing) => hideError(error, sealing),
  // Already hidden when they were written; secrets noted since are hidden here.
  log: (log: TaskLog, { hide }) => changed(log, "lines", mapList(log.lines, hide) as string[]),
};

/** The error without secrets in its message and its details. */
export function hideError(error: TaskError, { hide, hideIn }: Pick<EventSealing, "hide" | "hideIn">): TaskError {
  const hidden = changed(error, "message", hide(error.message));
  return error.details === undefined ? hidden : changed(hidden, "details", hideIn(error.details));
}

function sealResult(result: StoredResult, sealing: EventSealing): StoredResult {
  const { seal, hide } = sealing;
  let sealed = result;
  if (result.value !== undefined) sealed = changed(sealed, "value", seal(result.value));
  if (result.ref !== undefined) sealed = changed(sealed, "ref", sealReference(result.ref, sealing));
  if (result.virtual !== undefined) {
    sealed = changed(
      sealed,
      "virtual",
      mapValues(result.virtual, (field) => sealResult(field, sealing)),
    );
  }
  if (result.about !== undefined) {
    let { about } = result;
    const { http, py } = about;
    if (http !== undefined) {
      about = changed(about, "http", changed(http, "headers", seal(http.headers) as JsonObject));
    }
    if (py !== undefined) about = changed(about, "py", changed(py, "traceback", hide(py.traceback)));
    sealed = changed(sealed, "about", about);
  }
  return sealed;
}

function sealReference(ref: ResultRef, { seal, hideCut, hide }: EventSealing): ResultRef {
  const { preview } = ref;
  const sample = preview.truncated ? hideCut(preview.sample) : hide(preview.sample);
  const extracted = changed(ref, "extracted", seal(ref.extracted) as JsonObject);
  return changed(extracted, "preview", changed(preview, "sample", sample));
}

/** The same object if the field is unchanged. */
function changed<T extends object, K extends keyof T>(object: T, key: K, value: T[K]): T {
  if (object[key] === value) return object;
  const copy = (Array.isArray(object) ? [...object] : { ...object }) as T;
  copy[key] = value;
  return copy;
}

/** The same list if no item changes. */
function mapList<T>(list: readonly T[], map: (item: T) => T): readonly T[] {
  const mapped = list.map(map);
  return mapped.some((item, index) => item !== list[index]) ? mapped : list;
}
