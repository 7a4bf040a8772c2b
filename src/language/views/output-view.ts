import type { TaskError } from "../../schema/words/outcome.ts";
import type { ResultAbout, StoredResult } from "../../schema/words/result.ts";
import { noReferences, type References } from "./references.ts";
import { ResultView } from "./result-view.ts";
import { View } from "./view.ts";

/** What is known of a finished task or step: the envelope of language document section 5.2. */
export interface Outcome extends Partial<ResultAbout> {
  status: "ok" | "error";
  result: StoredResult;
  error?: TaskError;
}

/**
 * The three places in which `output` (and `outcome`) is read, and what it is there:
 *
 * - `envelope`: policy rules and the next task's config. `data` is the tool's result.
 * - `raw`: a task's `set`. Bare, it is the tool's result.
 * - `boundary`: a step's `set` and arcs. `data` is the result's own `data` where it has one.
 */
export type OutputPlace = "envelope" | "raw" | "boundary";

/** `output` of a template. Fields of the envelope and of the result are both readable; the place says which is first. */
export class OutputView extends View {
  readonly #outcome: Outcome;
  readonly #place: OutputPlace;
  readonly #result: ResultView;

  constructor(outcome: Outcome, place: OutputPlace, references: References = noReferences) {
    super();
    this.#outcome = outcome;
    this.#place = place;
    this.#result = new ResultView(outcome.result, references);
  }

  override get(key: string | number): unknown {
    if (typeof key === "number") return this.#result.get(key);
    const fromResult = this.#place === "raw";
    const first = fromResult ? this.#result.get(key) : this.#field(key);
    if (first !== undefined) return first;
    const second = fromResult ? this.#field(key) : this.#result.get(key);
    // Another name of `result`, where the result has no field of that name.
    return second === undefined && key === "response" ? this.#result : second;
  }

  override plain(): unknown {
    if (this.#place === "raw") return this.#result.plain();
    const { status, error, meta, http, pg, py, result } = this.#outcome;
    const envelope = { status, data: this.#data(), error: error ?? null, ref: result.ref ?? null, meta: meta ?? null };
    return { ...envelope, ...(http && { http }), ...(pg && { pg }), ...(py && { py }) };
  }

  #field(key: string): unknown {
    const outcome = this.#outcome;
    switch (key) {
      case "status":
      case "error":
      case "meta":
      case "http":
      case "pg":
      case "py":
        return outcome[key];
      case "data":
        return this.#data();
      case "result":
        return this.#result;
      case "ref":
        return outcome.result.ref;
      default:
        return undefined;
    }
  }

  #data(): unknown {
    const result = this.#result;
    if (this.#place !== "boundary") return result;
    // A loop's `data` is virtual and counts all the same.
    const data = result.stored.loop === undefined ? result.field("data") : result.get("data");
    return data === undefined ? result : data;
  }
}
