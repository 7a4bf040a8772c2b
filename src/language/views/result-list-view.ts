import { entriesOf, wholeLoop, wholeResultAt } from "../../schema/rules/whole-result.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import type { LoopResult, StoredResult } from "../../schema/words/result.ts";
import { ReferenceNeeded, type References, withReferences } from "./references.ts";
import { View } from "./view.ts";

/**
 * The results of a loop: their list in collection order, of which one item reads only the stored part that holds it, or what
 * `accumulate` makes of them.
 */
export class ResultListView extends View {
  readonly #loop: LoopResult;
  readonly #references: References;
  readonly #view: (result: StoredResult) => View;
  #all: unknown;

  /** @param view an iteration's result as templates see it. */
  constructor(loop: LoopResult, references: References, view: (result: StoredResult) => View) {
    super();
    this.#loop = loop;
    this.#references = references;
    this.#view = view;
  }

  override get(key: string | number): unknown {
    if (this.#loop.accumulate !== undefined) return fieldOf(this.plain(), key);
    if (typeof key !== "number") return undefined;
    return key < 0 ? fieldOf(this.plain(), key) : this.#item(key);
  }

  override plain(): unknown {
    this.#all ??= this.#collect();
    return this.#all;
  }

  #item(index: number): View | undefined {
    const inline = this.#loop.tail.find(([other]) => other === index);
    if (inline !== undefined) return this.#view(inline[1]);
    for (const part of this.#loop.parts) {
      if (index < part.min || index > part.max) continue;
      const found = this.#entries(part.ref).find(([other]) => other === index);
      if (found !== undefined) return this.#view(found[1]);
    }
    return undefined;
  }

  #collect(): unknown {
    const { parts, tail, accumulate, manifest } = this.#loop;
    if (accumulate !== undefined) {
      // With a manifest one part after another is loaded, and what they come to is kept.
      const work = manifest === undefined ? wholeLoop(this.#loop) : wholeResultAt(manifest);
      return withReferences(work, this.#references);
    }
    const refs = parts.map(({ ref }) => ref);
    const entries = [...tail];
    for (const ref of refs) for (const entry of this.#entries(ref, refs)) entries.push(entry);
    entries.sort(([left], [right]) => left - right);
    return entries.map(([, result]) => this.#view(result));
  }

  #entries(ref: string, then: readonly string[] = []): LoopResult["tail"] {
    const payload = this.#references.get(ref);
    if (payload === undefined) throw new ReferenceNeeded(ref, then);
    return entriesOf(payload);
  }
}

function fieldOf(value: unknown, key: string | number): unknown {
  if (typeof key === "number") return Array.isArray(value) ? value.at(key) : undefined;
  return isJsonObject(value) ? own(value, key) : undefined;
}
