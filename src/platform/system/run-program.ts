import { spawn } from "node:child_process";
import { inheritedEnvironment } from "../config/config.ts";

/** A user of the operating system. */
export interface Account {
  uid: number;
  gid: number;
}

/** How a program ended and what it wrote to both of its outputs, at most the last 16 KiB. */
export interface Ended {
  /** Exit code; null when a signal ended it. */
  code: number | null;
  output: string;
}

const OUTPUT_MAX = 16_384;

/**
 * Runs a program to its end, as another user if one is given, with `input` on its standard input. A program that cannot be
 * started has code null and the reason as output. `PG…` variables are not passed on: they would point PostgreSQL elsewhere.
 */
export function runProgram(
  file: string,
  args: readonly string[],
  options: { account?: Account | undefined; input?: string; folder?: string } = {},
): Promise<Ended> {
  const inherited = Object.entries(inheritedEnvironment()).filter(([name]) => !name.startsWith("PG"));
  const child = spawn(file, args, {
    ...options.account,
    // The other user may not be able to enter this process's folder.
    cwd: options.folder ?? "/",
    env: { ...Object.fromEntries(inherited), LC_ALL: "C" },
    stdio: "pipe",
    windowsHide: true,
  });
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-OUTPUT_MAX);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  // If a program ends before it has read everything, its exit code says why.
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.input ?? "");
  return new Promise((resolve) => {
    child.on("error", (error) => resolve({ code: null, output: error.message }));
    child.on("close", (code) => resolve({ code, output: output.trim() }));
  });
}
