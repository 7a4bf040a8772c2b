import { readdir, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { nearest } from "../../language/words/nearest.ts";
import type { LocalPlaybook } from "../../local/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CliIo } from "../command-line/command.ts";

/** Where playbooks come from: a local runtime, or the file catalog itself. */
interface Source {
  load(target: string, folder: string, signal: AbortSignal): Promise<LocalPlaybook>;
}

/**
 * The playbook that a command line names: a file, or the `metadata.path` of a document below the folder. Throws `FlowError`
 * USAGE for a folder, NOT_FOUND with the nearest existing name, and what the source throws.
 */
export async function loadNamed(source: Source, target: string, { folder, signal }: CliIo): Promise<LocalPlaybook> {
  const path = resolve(folder, target);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) {
    const hint = `Name one playbook in it; 'flow validate ${target}' checks all of them`;
    throw new FlowError("USAGE", `${target} is a folder. ${hint}`);
  }
  // A name with a file's ending means a file: all folders below are not searched for a document of that path.
  if (found === undefined && /\.ya?ml$/.test(target)) {
    const names = await readdir(dirname(path)).catch(() => []);
    const near = nearest(basename(path), names);
    const hint = near === undefined ? "" : ` Did you mean '${near}'?`;
    throw new FlowError("NOT_FOUND", `There is no file ${target}.${hint}`);
  }
  return await source.load(target, folder, signal);
}

/** The step that `--target`, or another option, names. Throws `FlowError` NOT_FOUND when the document has no such step. */
export function checkTarget(
  playbook: LocalPlaybook,
  target: string | undefined,
  option = "target",
): string | undefined {
  const { steps } = playbook.program;
  if (target === undefined || steps.has(target)) return target;
  const near = nearest(target, steps.keys());
  const shown = [...steps.keys()].slice(0, STEPS_LISTED_MAX).join(", ");
  const more = steps.size > STEPS_LISTED_MAX ? ", …" : "";
  const hint = near === undefined ? `Its steps are: ${shown}${more}` : `Did you mean '${near}'?`;
  throw new FlowError("NOT_FOUND", `--${option}: the playbook has no step '${target}'. ${hint}`);
}

/** Names listed when no similar one is found. */
const STEPS_LISTED_MAX = 20;
