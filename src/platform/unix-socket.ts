import { rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { messageOf } from "../schema/words/errors.ts";

/** Bytes of a path on macOS; 107 on Linux. */
const PATH_MAX = 103;

/** Whether a unix socket can have this path. On Windows none can. */
export function fitsSocket(path: string): boolean {
  return process.platform !== "win32" && Buffer.byteLength(path) <= PATH_MAX;
}

/**
 * Makes sure that a socket can be made at this path: one that a killed process left there is removed. Says why not where something
 * listens on it, it is no socket, or the path cannot be looked at; nothing is removed then.
 */
export async function freeSocket(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path);
    if (!found.isSocket()) return "there is a file of that name, which is no socket";
  } catch (error) {
    return isCode(error, "ENOENT") ? undefined : messageOf(error);
  }
  const answer = await tryConnect(path);
  if (answer === undefined) return "something listens there already, perhaps another flow";
  // The file is there, and no process takes connections.
  if (!isCode(answer, "ECONNREFUSED")) return messageOf(answer);
  await rm(path, { force: true });
  return undefined;
}

/** The error; undefined for a connection, which is closed again. */
async function tryConnect(path: string): Promise<unknown> {
  const socket = connect(path);
  try {
    return await new Promise((resolve) => {
      socket.once("error", resolve).once("connect", () => resolve(undefined));
    });
  } finally {
    socket.destroy();
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
