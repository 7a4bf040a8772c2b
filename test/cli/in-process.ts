import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { runCli } from "../../src/cli/main.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { CliEnd } from "../support/service/cli-process.ts";

/** A command line in this process: what does not depend on being a process is tested without the time that one takes. */
export interface RunningCommand {
  /** Resolves with what standard error holds, as soon as it matches; rejects when the command ends without it. */
  untilStderr(pattern: RegExp): Promise<RegExpExecArray>;
  /** As Ctrl-C does. */
  interrupt(): void;
  ended: Promise<CliEnd>;
}

/** Starts a command in a folder, with a bare environment. */
export function startCommand(
  folder: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  stdin = "",
): RunningCommand {
  const stop = new AbortController();
  const written = { stdout: "", stderr: "" };
  const watchers = new Set<() => void>();
  const stream = (name: "stdout" | "stderr") =>
    new Writable({
      write(chunk, _encoding, done) {
        written[name] += String(chunk);
        for (const look of watchers) look();
        done();
      },
    });
  const io = { stdout: stream("stdout"), stderr: stream("stderr"), environment, folder, signal: stop.signal };
  const ended = runCli(args, { ...io, stdin: Readable.from(stdin) }).then((code) => ({ code, ...written }));
  const untilStderr = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(written.stderr);
        if (found !== null) resolve(found);
      };
      watchers.add(look);
      look();
      void ended.then(() => reject(new Error(`flow ended without saying ${String(pattern)}:\n${written.stderr}`)));
    });
  return { untilStderr, interrupt: () => stop.abort(new FlowError("CANCELLED", "interrupted by SIGINT")), ended };
}

/** Runs a command to its end. */
export function command(
  folder: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  stdin = "",
): Promise<CliEnd> {
  return startCommand(folder, args, environment, stdin).ended;
}

const HOME_FOLDER = process.cwd();
let running = 0;

/**
 * Runs `flow` to its end as `flow` of `cli-process` does, with that environment and standing in that folder, without the 0.2 s that a
 * process takes. Of several at once the folder of the last is the one where paths in messages begin.
 */
export async function runFlow(
  folder: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<CliEnd> {
  const { PATH, HOME } = process.env;
  running += 1;
  process.chdir(folder);
  try {
    return await command(folder, args, { PATH, HOME, XDG_CONFIG_HOME: join(folder, ".settings"), ...environment });
  } finally {
    running -= 1;
    if (running === 0) process.chdir(HOME_FOLDER);
  }
}
