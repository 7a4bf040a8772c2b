import { FlowError } from "../../schema/words/errors.ts";
import type { CliInput } from "../command-line/command.ts";
import { listExecutions, readExecution } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";

/** Digits of an id that no execution has yet fewer of. */
const FULL_ID_DIGITS = 15;
/** Executions that are told of when a start is that of several. */
const LISTED_MAX = 5;

/**
 * The id of the execution that a word names: the whole id, or its start where no other one begins so. A word that is the start
 * of none is given back as it is, so that whoever asks for it is told that there is none.
 *
 * Throws `FlowError` USAGE for a word that is no number or the start of several, and as `callServer` does.
 */
export async function resolveExecutionId(word: string, target: ServerTarget, signal: AbortSignal): Promise<string> {
  if (!/^[1-9]\d{0,15}$/.test(word)) {
    const hint = "'flow executions' lists them";
    throw new FlowError("USAGE", `An execution is named by its id, a number; got '${word}'. ${hint}`);
  }
  if (word.length >= FULL_ID_DIGITS || (await exists(word, target, signal))) return word;
  const query = new URLSearchParams({ id_prefix: word, limit: String(LISTED_MAX + 1) });
  const { executions } = await listExecutions(target, query, signal);
  // An older server does not know the filter.
  const found = executions.filter(({ execution_id: id }) => id.startsWith(word));
  if (found.length <= 1) return found[0]?.execution_id ?? word;
  const listed = found
    .slice(0, LISTED_MAX)
    .map(({ execution_id, path, status }) => `${execution_id} ${path} ${status}`);
  const more = found.length > LISTED_MAX ? "\n  …" : "";
  const message = `${word} is the start of several executions; give more of it:\n  ${listed.join("\n  ")}${more}`;
  throw new FlowError("USAGE", message);
}

async function exists(id: string, target: ServerTarget, signal: AbortSignal): Promise<boolean> {
  try {
    await readExecution(target, id, signal);
    return true;
  } catch (error) {
    if (error instanceof FlowError && error.code === "NOT_FOUND") return false;
    throw error;
  }
}

/**
 * The execution that a command line names: by its id or the start of it, or with `--last` the one that was started last and that no other called.
 * Throws `FlowError` USAGE, NOT_FOUND when there is none yet, and as `callServer` does.
 */
export async function executionArgument(input: CliInput, target: ServerTarget): Promise<string> {
  const { arguments: words, options, io } = input;
  const [word] = words;
  const isLast = options["last"] === true;
  if (word !== undefined && isLast) {
    throw new FlowError("USAGE", `${word} and --last exclude each other; which one is meant?`);
  }
  if (word !== undefined) return await resolveExecutionId(word, target, io.signal);
  if (!isLast) {
    const hint = "Give its id or the start of it ('flow executions' lists them), or --last";
    throw new FlowError("USAGE", `Which execution? ${hint}`);
  }
  const query = new URLSearchParams({ limit: String(SEARCHED_MAX) });
  const { executions } = await listExecutions(target, query, io.signal);
  const last = executions.find(({ parent_execution_id }) => parent_execution_id === null) ?? executions[0];
  if (last !== undefined) return last.execution_id;
  throw new FlowError("NOT_FOUND", `There is no execution at ${target.url} yet; 'flow run' starts one`);
}

/** Executions among which the last one is looked for: it may have called many others since. */
const SEARCHED_MAX = 500;
