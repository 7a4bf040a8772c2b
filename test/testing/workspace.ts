import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Writable } from "node:stream";
import type { TestContext } from "node:test";
import type { CliInput, CliValues } from "../../src/cli/command-line/command.ts";

/** A folder with these files, removed after the test. */
export function workspace(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "flow-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** What a command wrote, and its exit code. */
export interface CommandRun {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a command in this process, as the command line would. */
export async function command(
  run: (input: CliInput) => Promise<number>,
  folder: string,
  args: string[],
  options: CliValues = {},
  environment: NodeJS.ProcessEnv = { PATH: process.env["PATH"] ?? "" },
  signal: AbortSignal = new AbortController().signal,
): Promise<CommandRun> {
  const stdout = collector();
  const stderr = collector();
  const io = { stdout: stdout.stream, stderr: stderr.stream, environment, folder, signal };
  const code = await run({ arguments: args, options, io });
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

function collector() {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return { stream, text: () => chunks.join("") };
}
