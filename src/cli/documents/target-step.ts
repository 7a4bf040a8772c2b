import { nearest } from "../../language/words/nearest.ts";
import type { LocalPlaybook } from "../../local/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** The step that `--target` names. Throws `FlowError` NOT_FOUND when the document has no such step. */
export function checkTarget(playbook: LocalPlaybook, target: string | undefined): string | undefined {
  const { steps } = playbook.program;
  if (target === undefined || steps.has(target)) return target;
  const near = nearest(target, steps.keys());
  const shown = [...steps.keys()].slice(0, STEPS_LISTED_MAX).join(", ");
  const more = steps.size > STEPS_LISTED_MAX ? ", …" : "";
  const hint = near === undefined ? `Its steps are: ${shown}${more}` : `Did you mean '${near}'?`;
  throw new FlowError("NOT_FOUND", `--target: the playbook has no step '${target}'. ${hint}`);
}

/** Names listed when no similar one is found. */
const STEPS_LISTED_MAX = 20;
