import { FlowError } from "../../schema/words/errors.ts";
import type { Program } from "../program/program.ts";

/** Throws `FlowError` NOT_FOUND when the playbook has no step named `return_step`. */
export function checkReturnStep({ steps, playbook }: Program, name: string | undefined): void {
  if (name === undefined || steps.has(name)) return;
  const known = [...steps.keys()].join(", ");
  throw new FlowError("NOT_FOUND", `return_step: playbook '${playbook.path}' has no step '${name}'; it has: ${known}`);
}
