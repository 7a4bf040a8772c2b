import { FlowError } from "../schema/errors.ts";
import type { CliInput } from "./command.ts";
import { listExecutions } from "./server-executions.ts";
import type { ServerTarget } from "./server-target.ts";

/** An execution's id as it was typed. Throws `FlowError` USAGE. */
export function executionId(word: string): string {
  if (/^[1-9]\d{0,15}$/.test(word)) return word;
  throw new FlowError(
    "USAGE",
    `An execution is named by its id, a number; got '${word}'. 'flow executions' lists them`,
  );
}

/**
 * The execution that a command line names: by its id, or with `--last` the one that was started last and that no other called.
 * Throws `FlowError` USAGE, NOT_FOUND when there is none yet, and as `callServer` does.
 */
export async function namedExecution(input: CliInput, target: ServerTarget): Promise<string> {
  const { arguments: words, options, io } = input;
  const [word] = words;
  const isLast = options["last"] === true;
  if (word !== undefined && isLast) {
    throw new FlowError("USAGE", `${word} and --last exclude each other; which one is meant?`);
  }
  if (word !== undefined) return executionId(word);
  if (!isLast) throw new FlowError("USAGE", "Which execution? Give its id ('flow executions' lists them), or --last");
  const query = new URLSearchParams({ limit: String(LOOKED_AT) });
  const { executions } = await listExecutions(target, query, io.signal);
  const last = executions.find(({ parent_execution_id }) => parent_execution_id === null) ?? executions[0];
  if (last !== undefined) return last.execution_id;
  throw new FlowError("NOT_FOUND", `There is no execution at ${target.url} yet; 'flow run' starts one`);
}

/** Executions among which the last one is looked for: it may have called many others since. */
const LOOKED_AT = 500;
