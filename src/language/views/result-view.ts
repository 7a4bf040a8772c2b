import { isInline, loopFields, wholeResult, wholeRuns } from "../../schema/rules/whole-result.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { manifestOf } from "../../schema/words/manifest.ts";
import type { LoopResult, RunsResult, StoredResult } from "../../schema/words/result.ts";
import { loopManifest, tasksManifest } from "./bounded-result.ts";
import { keptAs, type References, withReferences } from "./references.ts";
import { ResultListView } from "./result-list-view.ts";
import { View } from "./view.ts";

/**
 * A stored result as templates see it (language document, section 4.5). A field is looked up as: own field, virtual field
 * (`_ref`, `_store`, `_preview`, `results`, a task's label, `command_N`), `data` and `result` as the result itself,
 * `body` as `data`, a field of its `data` object. What lies in a store is read only when a field needs it.
 */
export class ResultView extends View {
  readonly stored: StoredResult;
  readonly #references: References;
  #plain: unknown;

  constructor(stored: StoredResult, references: References) {
    super();
    this.stored = stored;
    this.#references = references;
  }

  override get(key: string | number): unknown {
    if (typeof key === "number") return itemAt(this.plain(), key);
    const field = this.field(key);
    if (field !== undefined) return field;
    const virtual = this.#virtualField(key);
    if (virtual !== undefined) return virtual;
    if (key === "data" || key === "result") return this;
    if (key === "body") return this.get("data");
    if (key === "rows" || key === "results") {
      const list = this.plain();
      if (Array.isArray(list)) return list;
    }
    const data = this.field("data");
    return isJsonObject(data) ? own(data, key) : undefined;
  }

  /** The result as JSON; a pipeline's fields merged. Throws {@link ReferenceNeeded} when the payload is not at hand. */
  override plain(): unknown {
    this.#plain ??= this.#compute();
    return this.#plain;
  }

  /**
   * The value for code that reads fields by itself and not by our rules: `body`, `command_N`, `results` and the selected fields
   * stand in it as real fields (language document, section 8).
   */
  forCode(): unknown {
    const plain = this.plain();
    if (!isJsonObject(plain)) return plain;
    const fields: JsonObject = { ...plain };
    const { virtual = {}, ref } = this.stored;
    for (const key of ["body", "results", ...Object.keys(virtual), ...Object.keys(ref?.extracted ?? {})]) {
      const value = Object.hasOwn(fields, key) ? undefined : this.#codeField(key);
      if (value !== undefined) setOwn(fields, key, value);
    }
    return fields;
  }

  #codeField(key: string): unknown {
    if (key === "body") return this.field("data");
    const extracted = own(this.stored.ref?.extracted ?? {}, key);
    if (extracted !== undefined) return extracted;
    return key === "results" && this.stored.tasks === undefined ? undefined : this.#virtualField(key);
  }

  #compute(): unknown {
    const { stored } = this;
    if (stored.ref !== undefined || stored.runs !== undefined) return this.#load();
    if (stored.loop !== undefined) return loopFields(stored.loop, this.#results(stored.loop));
    if (stored.tasks !== undefined) return this.#merge(stored.tasks);
    return stored.value ?? null;
  }

  /** The payload behind the reference, or what the parts of a manifest come to. */
  #load(): Json {
    this.#plain ??= this.#whole();
    return this.#plain as Json;
  }

  #whole(): Json {
    const { runs } = this.stored;
    const name = runs === undefined ? undefined : nameOf(runs);
    if (runs === undefined || name === undefined) return withReferences(wholeResult(this.stored), this.#references);
    return keptAs(name, this.#references, () => wholeRuns(runs));
  }

  /** Fields of all tasks, later wins. Where no task's result has fields, the last result as it is. */
  #merge(tasks: readonly [string, StoredResult][]): unknown {
    const merged: JsonObject = {};
    let last: unknown = null;
    let hasFields = false;
    for (const [, result] of tasks) {
      last = new ResultView(result, this.#references).plain();
      if (!isJsonObject(last)) continue;
      hasFields = true;
      for (const key of Object.keys(last)) setOwn(merged, key, own(last, key));
    }
    return hasFields ? merged : last;
  }

  #results(loop: LoopResult): ResultListView {
    return new ResultListView(loop, this.#references, (result) => new ResultView(result, this.#references));
  }

  /** The result's own field, without any virtual one; undefined when it has none. */
  field(key: string): unknown {
    const { stored } = this;
    const kept = stored.ref ?? stored.runs;
    if (kept !== undefined) {
      const extracted = own(kept.extracted, key);
      if (extracted !== undefined) return extracted;
      if (VIRTUAL_OF_REFERENCE.has(key)) return undefined;
      const payload = this.#load();
      return isJsonObject(payload) ? own(payload, key) : undefined;
    }
    if (stored.loop !== undefined) {
      return key === "results" ? this.#results(stored.loop) : own(loopFields(stored.loop, null), key);
    }
    if (stored.tasks !== undefined) {
      for (let index = stored.tasks.length - 1; index >= 0; index -= 1) {
        const entry = stored.tasks[index];
        if (entry === undefined) continue;
        const field = new ResultView(entry[1], this.#references).#fieldOfPart(key);
        if (field !== undefined) return field;
      }
      return undefined;
    }
    const plain = this.plain();
    return isJsonObject(plain) ? own(plain, key) : undefined;
  }

  /** Selected fields of a task's result are fields of the whole too, whether they stand beside a value or a reference. */
  #fieldOfPart(key: string): unknown {
    const field = this.field(key);
    if (field !== undefined) return field;
    const virtual = own(this.stored.virtual ?? {}, key) as StoredResult | undefined;
    return virtual && new ResultView(virtual, this.#references);
  }

  #virtualField(key: string): unknown {
    const { stored } = this;
    if (stored.virtual !== undefined) {
      const field = own(stored.virtual, key) as StoredResult | undefined;
      if (field !== undefined) return new ResultView(field, this.#references);
    }
    if (stored.tasks !== undefined) {
      const task = stored.tasks.find(([label]) => label === key);
      if (task !== undefined) return new ResultView(task[1], this.#references);
      if (key === "results") return this.#labels(stored.tasks);
    }
    if (stored.loop !== undefined && key === "data") return this.#results(stored.loop);
    if (key === "_ref" || key === "__ref__") return referenceOf(stored);
    if (stored.ref === undefined) return undefined;
    if (key === "_store") return stored.ref.store;
    return key === "_preview" ? stored.ref.preview : undefined;
  }

  #labels(tasks: readonly [string, StoredResult][]): Record<string, ResultView> {
    const labels: Record<string, ResultView> = {};
    for (const [label, result] of tasks) setOwn(labels, label, new ResultView(result, this.#references));
    return labels;
  }
}

const VIRTUAL_OF_REFERENCE: ReadonlySet<string> = new Set(["_ref", "__ref__", "_store", "_preview"]);

/** A ResultRef, or the manifest of results without a reference; undefined for an inline value. */
function referenceOf({ ref, loop, runs, tasks }: StoredResult): unknown {
  if (ref !== undefined) return ref;
  if (tasks !== undefined) return tasks.every(([, result]) => isInline(result)) ? undefined : tasksManifest(tasks);
  if (loop !== undefined) return loop.parts.length > 0 ? loopManifest(loop) : undefined;
  return runs === undefined ? undefined : runsManifest(runs);
}

/** What stored runs come to is kept until there is one more of them. Those that are inline cost no loading. */
function nameOf({ parts }: RunsResult): string | undefined {
  const last = parts.findLast((part) => "ref" in part);
  return last === undefined ? undefined : `${last.ref}#${parts.length}`;
}

function runsManifest({ accumulate, parts }: RunsResult): unknown {
  const stored = parts.filter((part) => "ref" in part);
  return stored.length === parts.length ? manifestOf(accumulate, stored) : undefined;
}

/** Item of a list by index, negative from the end; undefined if the value is not a list. */
function itemAt(list: unknown, index: number): unknown {
  return Array.isArray(list) ? list.at(index) : undefined;
}
