import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import * as v from "valibot";
import { FlowError, messageOf } from "../schema/errors.ts";
import type { CliIo } from "./command.ts";

/** A server that is called by a name. */
export interface ServerContext {
  server: string;
  token?: string;
}

/** The servers that this user knows, and the one in use. */
export interface Contexts {
  current?: string;
  contexts: Record<string, ServerContext>;
}

const ContextsFile = v.object({
  current: v.exactOptional(v.string()),
  contexts: v.record(v.string(), v.object({ server: v.string(), token: v.exactOptional(v.string()) })),
});

/** Where the contexts are kept: the user's folder of settings, as the system has it. */
export function contextsFile({ environment }: CliIo): string {
  const given = process.platform === "win32" ? environment["APPDATA"] : environment["XDG_CONFIG_HOME"];
  // A relative folder is to be ignored (XDG base directory specification).
  const base = given !== undefined && isAbsolute(given) ? given : join(environment["HOME"] || homedir(), ".config");
  return join(base, "flow", "contexts.json");
}

/**
 * Reads the contexts; none when there is no file. Throws `FlowError` FILE_UNREADABLE, or INVALID_SETTING for a file that is
 * not one of ours, or that others may read although it can hold tokens.
 */
export async function readContexts(io: CliIo): Promise<Contexts> {
  const file = contextsFile(io);
  let text: string;
  try {
    const { mode } = await stat(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new FlowError("INVALID_SETTING", `${file} can be read by others and may hold tokens: chmod 600 ${file}`);
    }
    text = await readFile(file, "utf8");
  } catch (cause) {
    if (cause instanceof FlowError) throw cause;
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return { contexts: {} };
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${file}: ${messageOf(cause)}`, { cause });
  }
  try {
    return v.parse(ContextsFile, JSON.parse(text));
  } catch (cause) {
    // Its text stays out of the message: it may be a token.
    const hint = "Repair it, or delete it and add the contexts again";
    throw new FlowError("INVALID_SETTING", `${file} is not a file of contexts. ${hint}`, { cause });
  }
}

/** Writes the contexts, readable by this user alone, all or nothing. Throws `FlowError` FILE_UNREADABLE. */
export async function writeContexts(io: CliIo, contexts: Contexts): Promise<void> {
  const file = contextsFile(io);
  const draft = `${file}.${process.pid}`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(draft, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, file);
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw new FlowError("FILE_UNREADABLE", `Cannot write ${file}: ${messageOf(cause)}`, { cause });
  }
}
