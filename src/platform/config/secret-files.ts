import { readFileSync } from "node:fs";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** Has a meaning of its own: one key per line. */
const OWN_MEANING = "FLOW_ENCRYPTION_KEYS_FILE";
/** No secret is longer; a wrong path may be a disk. */
const CHARS_MAX = 65_536;

/**
 * The environment, with the values of secrets that are given as files: FLOW_WORKER_TOKEN_FILE is the path of the file that holds
 * FLOW_WORKER_TOKEN. Line breaks and blanks at its ends do not count. Throws `FlowError` INVALID_SETTING for a file that cannot be
 * read, and where both are given.
 */
export function withSecretFiles(
  environment: Readonly<NodeJS.ProcessEnv>,
  names: readonly string[],
): Readonly<NodeJS.ProcessEnv> {
  const read: Record<string, string> = {};
  for (const name of names) {
    const path = environment[`${name}_FILE`]?.trim() ?? "";
    if (path === "" || `${name}_FILE` === OWN_MEANING) continue;
    if ((environment[name] ?? "").trim() !== "") {
      throw new FlowError("INVALID_SETTING", `${name} and ${name}_FILE are both set: take one of them away`);
    }
    read[name] = readSecret(name, path);
  }
  return Object.keys(read).length === 0 ? environment : { ...environment, ...read };
}

function readSecret(name: string, path: string): string {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (text !== "" && text.length <= CHARS_MAX) return text;
  } catch (error) {
    throw new FlowError("INVALID_SETTING", `${name}_FILE: cannot read ${path}: ${messageOf(error)}`);
  }
  throw new FlowError("INVALID_SETTING", `${name}_FILE: ${path} is empty, or longer than a secret can be`);
}
