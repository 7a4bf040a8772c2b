import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../schema/json.ts";
import type { LoopResult, StoredResult } from "../schema/result.ts";
import { ReferenceNeeded, type References } from "./references.ts";
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
   * The value for code that reads fields by itself and not by our rules: `body`, `command_N` and `results` stand in it as
   * real fields (language document, section 8).
   */
  forCode(): unknown {
    const plain = this.plain();
    if (!isJsonObject(plain)) return plain;
    const fields: JsonObject = { ...plain };
    for (const key of ["body", "results", ...Object.keys(this.stored.virtual ?? {})]) {
      const value = Object.hasOwn(fields, key) ? undefined : this.#codeField(key);
      if (value !== undefined) setOwn(fields, key, value);
    }
    return fields;
  }

  #codeField(key: string): unknown {
    if (key === "body") return this.field("data");
    return key === "results" && this.stored.tasks === undefined ? undefined : this.#virtualField(key);
  }

  #compute(): unknown {
    const { stored } = this;
    if (stored.ref !== undefined) return this.#load(stored.ref.ref);
    if (stored.loop !== undefined) return loopFields(stored.loop, this.#results(stored.loop));
    if (stored.tasks !== undefined) return this.#merge(stored.tasks);
    return stored.value ?? null;
  }

  #load(ref: string): Json {
    const payload = this.#references.get(ref);
    if (payload === undefined) throw new ReferenceNeeded(ref);
    return payload;
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
    return new ResultListView(loop, this.#references);
  }

  /** The result's own field, without any virtual one; undefined when it has none. */
  field(key: string): unknown {
    const { stored } = this;
    if (stored.ref !== undefined) {
      const extracted = own(stored.ref.extracted, key);
      if (extracted !== undefined) return extracted;
      if (VIRTUAL_OF_REFERENCE.has(key)) return undefined;
      const payload = this.#load(stored.ref.ref);
      return isJsonObject(payload) ? own(payload, key) : undefined;
    }
    if (stored.loop !== undefined) {
      return key === "results" ? this.#results(stored.loop) : own(loopFields(stored.loop, null), key);
    }
    if (stored.tasks !== undefined && stored.tasks.length > 1) {
      for (let index = stored.tasks.length - 1; index >= 0; index -= 1) {
        const entry = stored.tasks[index];
        if (entry === undefined) continue;
        const field = new ResultView(entry[1], this.#references).field(key);
        if (field !== undefined) return field;
      }
      return undefined;
    }
    const plain = this.plain();
    return isJsonObject(plain) ? own(plain, key) : undefined;
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
    if (stored.ref === undefined) return undefined;
    if (key === "_ref" || key === "__ref__") return stored.ref;
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

/** The results of a loop in collection order. One item reads only the stored part that holds it. */
class ResultListView extends View {
  readonly #loop: LoopResult;
  readonly #references: References;
  #all: ResultView[] | undefined;

  constructor(loop: LoopResult, references: References) {
    super();
    this.#loop = loop;
    this.#references = references;
  }

  override get(key: string | number): unknown {
    if (typeof key !== "number" || key < 0) return typeof key === "number" ? itemAt(this.plain(), key) : undefined;
    const inline = this.#loop.tail.find(([index]) => index === key);
    if (inline !== undefined) return new ResultView(inline[1], this.#references);
    for (const part of this.#loop.parts) {
      if (key < part.min || key > part.max) continue;
      const found = this.#entries(part.ref).find(([index]) => index === key);
      if (found !== undefined) return new ResultView(found[1], this.#references);
    }
    return undefined;
  }

  override plain(): unknown {
    this.#all ??= this.#collect();
    return this.#all;
  }

  #collect(): ResultView[] {
    const entries = [...this.#loop.tail, ...this.#loop.parts.flatMap((part) => this.#entries(part.ref))];
    entries.sort(([left], [right]) => left - right);
    return entries.map(([, result]) => new ResultView(result, this.#references));
  }

  #entries(ref: string): [number, StoredResult][] {
    const payload = this.#references.get(ref);
    if (payload === undefined) throw new ReferenceNeeded(ref);
    // The part was written by the engine (`loop.results.stored`), never by a user.
    return payload as unknown as [number, StoredResult][];
  }
}

function loopFields(loop: LoopResult, results: unknown): Record<string, unknown> {
  const { total, success, failed } = loop.stats;
  return { results, stats: { total, success, failed }, iterations: success + failed, status: loop.status };
}

/** Item of a list by index, negative from the end; undefined for what is no list. */
function itemAt(list: unknown, index: number): unknown {
  return Array.isArray(list) ? list.at(index) : undefined;
}
