import { loadRegistered } from "../../language/load/load.ts";
import type { Pieces } from "../../language/words/pieces.ts";
import type { Diagnostic } from "../../schema/words/diagnostic.ts";
import type { Playbook, Step } from "../../schema/words/playbook.ts";

/**
 * A playbook on its way from one thread to another: JSON texts, which are copied at once. As an object, 5,000 steps would take
 * 50 to 100 ms to copy, without an interruption.
 */
export interface PlaybookTexts {
  /** The playbook without its steps. */
  head: string;
  /** One text for each step. */
  steps: string[];
}

/** {@link readRegistered}'s answer. */
export interface RegisteredRead {
  /** Present exactly when no diagnostic is an error. */
  playbook?: PlaybookTexts;
  diagnostics: Diagnostic[];
}

/** Reads a playbook that the catalog has, `file` being its name in messages. Computes: 5,000 steps take a second. */
export function readRegistered(content: string, file: string): RegisteredRead {
  const { playbook, diagnostics } = loadRegistered(content, file);
  if (playbook === undefined) return { diagnostics };
  const head: Playbook = { ...playbook, steps: [] };
  const steps = playbook.steps.map((step) => JSON.stringify(step));
  return { playbook: { head: JSON.stringify(head), steps }, diagnostics };
}

/** The playbook that the texts are of. */
export function* joinPlaybook({ head, steps }: PlaybookTexts): Pieces<Playbook> {
  const playbook = JSON.parse(head) as Playbook;
  const read: Step[] = [];
  for (const step of steps) {
    yield;
    read.push(JSON.parse(step) as Step);
  }
  return { ...playbook, steps: read };
}
