import type { WritableResultStore } from "../../ports/result-store.ts";
import { type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { type Accumulate, manifestOf, startMerge } from "../../schema/words/manifest.ts";
import type { ResultConfig } from "../../schema/words/playbook.ts";
import type { RunsResult, StoredResult } from "../../schema/words/result.ts";
import {
  fieldNames,
  inlineBytesMax,
  type Kept,
  type ResultPlace,
  type Shown,
  scalars,
  storeManifest,
  storePart,
} from "./store-result.ts";

/** The results of one task's runs within a step or an iteration, as one (`spec.result.accumulate`). */
export interface Accumulation {
  /**
   * The id under which the next run is stored. Runs of a retry share theirs: each successful run is a separate part, a failed
   * one is replaced by the next.
   */
  nextId(taskRunId: string): string;
  /** Takes the result of a run that went well: `data` is what it gave, `kept` how it is kept. Throws `FlowError` of the store. */
  add(kept: Kept, place: ResultPlace, data: Json): Promise<void>;
  /** What they are so far, for the templates of the pipeline; undefined before the first. */
  current(): StoredResult | undefined;
  /** What they are in the end: inline while all of it is small, else a manifest. Throws `FlowError` of the store. */
  end(): Promise<Kept | undefined>;
}

/** What an accumulation is made of. */
export interface AccumulationParts {
  store: WritableResultStore;
  accumulate: Accumulate;
  config: ResultConfig;
  /** Where the manifest is kept: `taskRunId` is that of all runs together. */
  place: ResultPlace;
  /** A loop joins its iterations by the same rule: a single run is left to it, several are marked as joined. */
  withinLoop: boolean;
}

/**
 * Gathers results one after another. They stay in memory up to the limit of inline results; beyond it every part goes to the
 * store, and what is held of it is its reference.
 */
export function createAccumulation(parts: AccumulationParts): Accumulation {
  const { store, accumulate, config, withinLoop } = parts;
  const runs: RunsResult = { accumulate, parts: [], extracted: {} };
  const inline: { at: number; value: Json; place: ResultPlace }[] = [];
  let inlineBytes = 0;
  let isStored = false;
  let last = { taskRunId: "", parts: 0 };
  let names: string[] | undefined;

  const shown = (): Shown => ({ extracted: runs.extracted, fields: names });
  const toStore = async () => {
    isStored = true;
    for (const { at, value, place } of inline) runs.parts[at] = await storePart(store, place, value, config);
    inline.length = 0;
  };
  return {
    nextId(taskRunId) {
      if (last.taskRunId !== taskRunId) last = { taskRunId, parts: 0 };
      return last.parts === 0 ? taskRunId : `${taskRunId}-${last.parts + 1}`;
    },
    async add({ result, bytes }, place, data) {
      last.parts += 1;
      runs.extracted = fieldsOf(result, config);
      names = namesWith(names, data, accumulate);
      if (result.ref !== undefined) {
        isStored = true;
        // The size of a sensitive part is not shown either.
        runs.parts.push({ ref: result.ref.ref, bytes: config.sensitive ? 0 : result.ref.meta.bytes });
      } else {
        const value = result.value ?? null;
        inline.push({ at: runs.parts.length, value, place });
        runs.parts.push({ value });
        inlineBytes += bytes;
      }
      if (isStored || inlineBytes > inlineBytesMax(config)) await toStore();
    },
    current: () => (runs.parts.length === 0 ? undefined : { runs: { ...runs } }),
    async end() {
      if (runs.parts.length === 0 || (withinLoop && runs.parts.length === 1)) return undefined;
      const kept = isStored
        ? await storeManifest(store, parts.place, manifestOf(accumulate, stored(runs)), shown(), config)
        : inlineResult(runs, inlineBytes);
      return withinLoop ? { ...kept, result: { ...kept.result, merged: true } } : kept;
    },
  };
}

/** The names of the fields that the runs come to, with one run more: their values are in the store. A list has none. */
function namesWith(names: string[] | undefined, data: Json, { strategy, ...path }: Accumulate): string[] | undefined {
  if (strategy === "append" || strategy === "concat") return undefined;
  const found = startMerge({ strategy: "append", ...path });
  found.add(data);
  let all = names;
  for (const value of found.value() as Json[]) {
    const own = fieldNames(value);
    const joins = strategy === "merge" && own !== undefined && all !== undefined;
    all = joins ? fieldNames(Object.fromEntries([all ?? [], own].flat().map((name) => [name, null]))) : own;
  }
  return all;
}

function stored({ parts }: RunsResult) {
  return parts.filter((part) => "ref" in part);
}

/** All of it inline; the fields of the last run stay readable beside it, as they are beside a reference. */
function inlineResult({ accumulate, parts, extracted }: RunsResult, bytes: number): Kept {
  const merge = startMerge(accumulate);
  for (const part of parts) if ("value" in part) merge.add(part.value);
  const virtual: Record<string, StoredResult> = {};
  for (const key of Object.keys(extracted)) setOwn(virtual, key, { value: own(extracted, key) as Json });
  const value = merge.value();
  return { result: Object.keys(virtual).length === 0 ? { value } : { value, virtual }, bytes };
}

/** Scalars and selected fields of a result: what can be read of it without its payload. */
function fieldsOf({ ref, value, virtual = {} }: StoredResult, { select }: ResultConfig): JsonObject {
  if (ref !== undefined) return ref.extracted;
  const fields = scalars(value ?? null);
  for (const { as } of select) {
    const field = own(virtual, as) as StoredResult | undefined;
    if (field?.value !== undefined) setOwn(fields, as, field.value);
  }
  return fields;
}
