import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { CliIo } from "../command-line/command.ts";

/**
 * The whole text of a file that an option names, `-` for standard input, without the line's end that editors add. `what` is
 * the option, for the error. Throws `FlowError` FILE_UNREADABLE.
 */
export async function readTextOption(file: string, what: string, io: CliIo): Promise<string> {
  try {
    const text = file === "-" ? await readStdin(io) : await readFile(resolve(io.folder, file), "utf8");
    return text.replace(/\r?\n$/, "");
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${file} for ${what}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Warns of a secret that stands on the command line: every user of the machine sees it while the command runs, and the shell keeps it.
 * `what` is the option, `instead` how else to give it.
 */
export function warnOfArgument(io: CliIo, what: string, instead: string): void {
  io.stderr.write(
    `flow: ${what} is a secret that other users of this machine can see on the command line: ${instead}\n`,
  );
}

/** Not `/dev/stdin`: a pipe may be a socket, which cannot be opened by its name. */
async function readStdin({ stdin }: CliIo): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stdin ?? []) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString("utf8");
}
