import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../words/json.ts";
import {
  type Accumulate,
  asManifest,
  isManifestRef,
  type Manifest,
  startMerge,
  type TaskPart,
  type TasksManifest,
} from "../words/manifest.ts";
import type { LoopResult, ResultRef, StoredResult } from "../words/result.ts";

/**
 * A stored result as one JSON value. Written once for all loaders: as generators that yield the payload they need next and
 * receive it. Templates answer from loaded payloads, the artifact tool and the command line from a store.
 */

/** A required payload, and the known ones that will be required after it. */
export interface PartRequest {
  ref: string;
  then: readonly string[];
  /** Of a manifest what its parts come to is wanted, not its record. */
  whole?: true;
}

/** Work that asks for payloads on its way. */
export type Loading<T> = Generator<PartRequest, T, Json>;

/** Carries the work out, one payload in memory at a time. Throws what `load` throws. */
export async function loading<T>(work: Loading<T>, load: (ref: string) => Promise<Json>): Promise<T> {
  let step = work.next();
  while (step.done !== true) {
    const { ref, whole } = step.value;
    step = work.next(whole === true ? await loading(referenced(ref), load) : await load(ref));
  }
  return step.value;
}

/** The value of a result. `shown`: whether a payload may be loaded; what may not stays a reference, or is left out of a pipeline. */
export function* wholeResult(stored: StoredResult, shown: (ref: ResultRef) => boolean = () => true): Loading<Json> {
  if (stored.ref !== undefined) {
    return shown(stored.ref) ? yield { ref: stored.ref.ref, then: [], whole: true } : (stored.ref as Json);
  }
  if (stored.runs !== undefined) return yield* wholeRuns(stored.runs);
  if (stored.loop !== undefined) return loopFields(stored.loop, yield* wholeLoop(stored.loop, shown));
  if (stored.tasks === undefined) return stored.value ?? null;
  const values: Json[] = [];
  for (const [, result] of stored.tasks) {
    if (result.ref === undefined || shown(result.ref)) values.push(yield* wholeResult(result, shown));
  }
  return mergedFields(values);
}

/** The same for a reference alone, where who carries it out may have the whole at hand. */
export function* wholeResultAt(ref: string): Loading<Json> {
  return yield { ref, then: [], whole: true };
}

/** What is behind a reference: of a manifest what its parts come to, else the payload. */
export function* referenced(ref: string): Loading<Json> {
  const payload = yield { ref, then: [] };
  const manifest = isManifestRef(ref) ? asManifest(payload) : undefined;
  return manifest === undefined ? payload : yield* wholeManifest(manifest);
}

/** What the parts of a manifest come to. */
export function* wholeManifest(manifest: Manifest | TasksManifest): Loading<Json> {
  if (manifest.strategy === "fields") return yield* wholeTasks(manifest.parts);
  const { parts } = manifest;
  if (parts.some(({ count }) => count !== undefined)) {
    return yield* mergedIterations({ ...manifest, tail: [] }, () => true);
  }
  return yield* wholeRuns({ accumulate: manifest, parts });
}

function* wholeTasks(parts: readonly TaskPart[]): Loading<Json> {
  const values: Json[] = [];
  for (const part of parts) values.push("ref" in part ? yield* wholeResultAt(part.ref) : part.value);
  return mergedFields(values);
}

/** What several runs come to. */
export function* wholeRuns({
  accumulate,
  parts,
}: {
  accumulate: Accumulate;
  parts: readonly ({ ref: string } | { value: Json })[];
}): Loading<Json> {
  const merge = startMerge(accumulate);
  const read = accumulate.strategy === "replace" ? parts.slice(-1) : parts;
  for (const part of read) merge.add("ref" in part ? yield { ref: part.ref, then: [] } : part.value);
  return merge.value();
}

/** What the iterations of a loop gave: the list of it, or what they come to. */
export function wholeLoop(loop: LoopResult, shown: (ref: ResultRef) => boolean = () => true): Loading<Json> {
  return mergedIterations({ ...(loop.accumulate ?? LISTED), parts: loop.parts, tail: loop.tail }, shown);
}

/** A loop that says nothing of it gives the list of its results. */
const LISTED: Accumulate = { strategy: "append" };

function* mergedIterations(
  { parts, tail, ...accumulate }: Accumulate & { parts: readonly { ref: string }[]; tail: LoopResult["tail"] },
  shown: (ref: ResultRef) => boolean,
): Loading<Json> {
  const isMerged = accumulate.strategy !== "append" || accumulate.merge_path !== undefined;
  const entries = [...tail];
  const refs = parts.map(({ ref }) => ref);
  for (const [index, ref] of refs.entries()) {
    const payload = yield { ref, then: index === 0 ? refs : [] };
    for (const entry of entriesOf(payload)) entries.push(entry);
  }
  entries.sort(([left], [right]) => left - right);
  const merge = startMerge(accumulate);
  for (const [, result] of entries) {
    if (result.failed === true && isMerged) continue;
    merge.add(yield* wholeResult(result, shown), isMergedResult(result));
  }
  return merge.value();
}

/** The pairs in a part of a loop. The engine wrote it (`loop.results.stored`); a forged part has none. */
export function entriesOf(part: Json): LoopResult["tail"] {
  if (!Array.isArray(part)) return [];
  const isEntry = (entry: Json) => Array.isArray(entry) && typeof entry[0] === "number" && isJsonObject(entry[1]);
  return part.filter(isEntry) as unknown as LoopResult["tail"];
}

/** True for the combined result of several runs of a task. */
function isMergedResult(stored: StoredResult): boolean {
  return stored.merged === true || (stored.ref !== undefined && isManifestRef(stored.ref.ref));
}

/** True for a result of which no payload is in a store. */
export function isInline({ ref, loop, tasks = [] }: StoredResult): boolean {
  return ref === undefined && (loop?.parts ?? []).length === 0 && tasks.every(([, result]) => isInline(result));
}

/** The fields of all tasks, later ones win; without fields the last value (language document, section 8). */
export function mergedFields(values: readonly Json[]): Json {
  const fields: JsonObject = {};
  const maps = values.filter(isJsonObject);
  for (const map of maps) for (const key of Object.keys(map)) setOwn(fields, key, own(map, key));
  return maps.length > 0 ? fields : (values.at(-1) ?? null);
}

/** A loop's result: what its iterations gave, and how many there were. */
export function loopFields<T>(loop: LoopResult, results: T) {
  const { total, success, failed } = loop.stats;
  return { results, stats: { total, success, failed }, iterations: success + failed, status: loop.status };
}
