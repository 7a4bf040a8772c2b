import { View } from "./view.ts";

/** Spellings of the same boundary (language document, section 7). */
const SUCCESS = ["step.done", "call.done", "step.exit", "task.done"];

/** The names whose mention in an arc's condition makes the arc one for failures. */
export const FAILURE_NAMES: readonly string[] = ["step.failed", "call.error", "step.error"];

/** The name that a loop's end has besides those of success or failure. */
export const LOOP_DONE = "loop.done";

/**
 * `event.name` in arcs: reads as one text and equals every spelling of the same boundary. A loop's end equals `loop.done`
 * too, whether it succeeded or failed.
 */
export class EventName extends View {
  readonly #text: string;
  readonly #aliases: ReadonlySet<string>;

  constructor(failed: boolean, loop: boolean) {
    super();
    const names = failed ? FAILURE_NAMES : SUCCESS;
    this.#aliases = new Set(loop ? [LOOP_DONE, ...names] : names);
    if (failed) this.#text = "step.failed";
    else this.#text = loop ? LOOP_DONE : "step.done";
  }

  override get(): unknown {
    return undefined;
  }

  override plain(): unknown {
    return this.#text;
  }

  override equals(other: unknown): boolean {
    return typeof other === "string" && this.#aliases.has(other);
  }
}
