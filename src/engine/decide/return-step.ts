import { FlowError } from "../../schema/words/errors.ts";
import type { Program } from "../program/program.ts";

/** Throws `FlowError` NOT_FOUND when the step whose result is wanted (`return_step`) is none of the playbook's. */
export function checkReturnStep({ steps, playbook }: Program, name: string | undefined): void {
  if (name === undefined || steps.has(name)) return;
  const known = [...steps.keys()].join(", ");
  throw new FlowError("NOT_FOUND", `return_step: playbook '${playbook.path}' has no step '${name}'; it has: ${known}`);
}
