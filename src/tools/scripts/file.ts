import { createHash } from "node:crypto";
import { constants, open, realpath } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../schema/words/errors.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { configurationError } from "../contract/task-config.ts";
import { SCRIPT_BYTES_MAX } from "./auth.ts";

/** The failure of a script that is not the one whose sha256 (hexadecimal) the playbook names, or undefined when it is. */
export function pinMismatch(code: string | Buffer, sha256: string | undefined, what: string): ToolResult | undefined {
  if (sha256 === undefined) return undefined;
  const found = createHash("sha256").update(code).digest("hex");
  if (found === sha256.toLowerCase()) return undefined;
  const message = `${what} is not the script that the playbook names: its sha256 is ${found}, expected ${sha256}. Look at what changed, then write the new one.`;
  return failed("configuration", "SCRIPT_CHANGED", message);
}

/**
 * Which files may be scripts: those in the playbook's folder and below (`document`), those in a given folder and below, or
 * none. On a shared worker any user who may register playbooks can write one, and it has no folder.
 */
export type ScriptFiles = "document" | "none" | { folder: string };

/**
 * The bytes of a script's file. `uri` is a path or a `file:` URL; a path is relative to the allowed folder, so that a
 * playbook and its scripts can be moved together. Links are followed before it is judged where the file lies. Throws
 * FlowError `INVALID_INPUT`.
 */
export async function readScriptFile(kind: string, uri: string, playbook: string, files: ScriptFiles): Promise<Buffer> {
  if (files === "none") {
    throw configurationError(
      `The script "${uri}" of the ${kind} task is a file, and this worker reads none: put the code into the playbook, give ` +
        'it by "source" of type http, or name a folder of scripts in FLOW_SCRIPT_FOLDER of the worker.',
    );
  }
  const root = files === "document" ? dirname(resolve(playbook)) : resolve(files.folder);
  try {
    return await readWithin(root, pathOf(uri, root));
  } catch (error) {
    throw configurationError(
      `Cannot read the script "${uri}" of the ${kind} task: ${messageOf(error)}. A path is relative to ${root}, ` +
        `${files === "document" ? "the folder of the playbook" : "the folder of FLOW_SCRIPT_FOLDER"}, and stays in it.`,
      error,
    );
  }
}

function pathOf(uri: string, root: string): string {
  return /^file:/i.test(uri) ? fileURLToPath(uri) : resolve(root, uri);
}

async function readWithin(root: string, path: string): Promise<Buffer> {
  // Before the file is looked for: what lies elsewhere is not even said to be there.
  if (!isWithin(root, path)) throw new Error(`${path} lies outside of that folder`);
  const [realRoot, real] = await Promise.all([realpath(root), realpath(path)]);
  if (!isWithin(realRoot, real)) throw new Error(`${path} leads out of that folder`);
  // Not blocking: opening a named pipe would wait for a writer, for ever.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${path} is not a file`);
    if (found.size > SCRIPT_BYTES_MAX)
      throw new Error(`${path} has ${found.size} bytes, more than ${SCRIPT_BYTES_MAX}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
