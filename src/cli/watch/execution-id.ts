import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CliInput } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import type { ServerTarget } from "../server/target.ts";

/** Every id has at least this many digits. */
const FULL_ID_DIGITS = 15;
/** Executions listed in the error for an ambiguous prefix. */
const LISTED_MAX = 5;

/**
 * The id of the execution that a word names: a whole id, or an unambiguous prefix. A prefix without a match is returned as
 * it is, so that the next call reports NOT_FOUND.
 *
 * Throws `FlowError` USAGE for a word that is not a number or an ambiguous prefix, and as `callServer` does.
 */
export async function resolveExecutionId(word: string, target: ServerTarget, signal: AbortSignal): Promise<string> {
  if (!/^[1-9]\d{0,15}$/.test(word)) {
    const hint = "'flow executions' lists them";
    throw new FlowError("USAGE", `An execution is named by its id, a number; got '${word}'. ${hint}`);
  }
  if (word.length >= FULL_ID_DIGITS || (await exists(word, target, signal))) return word;
  const query = { id_prefix: word, limit: LISTED_MAX + 1 };
  const { executions } = await callServer(target, EXECUTION_ROUTES.list, { query, signal });
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
    await callServer(target, EXECUTION_ROUTES.detail, { params: { execution_id: id }, signal });
    return true;
  } catch (error) {
    if (error instanceof FlowError && error.code === "NOT_FOUND") return false;
    throw error;
  }
}

/**
 * The execution of a command line: by its id or a prefix, or with `--last` the newest one that is not a sub-playbook. Throws
 * `FlowError` USAGE, NOT_FOUND on an empty server, and as `callServer` does.
 */
export async function executionArgument(input: CliInput, target: ServerTarget): Promise<string> {
  const { arguments: words, options, io } = input;
  const [word] = words;
  const isLast = options["last"] === true;
  if (word !== undefined && isLast) {
    throw new FlowError("USAGE", `${word} and --last exclude each other; give only one`);
  }
  if (word !== undefined) return await resolveExecutionId(word, target, io.signal);
  if (!isLast) {
    const hint = "Give its id or the start of it ('flow executions' lists them), or --last";
    throw new FlowError("USAGE", `Which execution? ${hint}`);
  }
  const query = { limit: SEARCHED_MAX };
  const { executions } = await callServer(target, EXECUTION_ROUTES.list, { query, signal: io.signal });
  const last = executions.find(({ parent_execution_id }) => parent_execution_id === null) ?? executions[0];
  if (last !== undefined) return last.execution_id;
  throw new FlowError("NOT_FOUND", `There is no execution at ${target.url} yet; 'flow run' starts one`);
}

/** Newest executions searched for `--last`: it may have called many others since. */
const SEARCHED_MAX = 500;
