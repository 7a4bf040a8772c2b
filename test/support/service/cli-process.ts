import { type ChildProcessByStdio, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

/** The compiled program: bundled, as users run it, which starts in half the time, where the bundle is of this code. */
export const MAIN = await compiledProgram();

async function compiledProgram(): Promise<string> {
  const { isCurrent } = (await import(new URL("../../../../bin/parts.js", import.meta.url).href)) as {
    isCurrent(names: readonly string[]): boolean;
  };
  const main = isCurrent(["program"]) ? "../../../flow/main.js" : "../../../src/main.js";
  return fileURLToPath(new URL(main, import.meta.url));
}

/** A `flow` process that has ended. */
export interface CliEnd {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A `flow` process. */
export interface CliProcess {
  process: ChildProcessByStdio<null, Readable, Readable>;
  /** Resolves when standard error holds the text; rejects when the process ends without it. */
  untilStderr(text: string): Promise<void>;
  ended: Promise<CliEnd>;
}

/** Starts the command line as users do, in a folder, with a bare environment. */
export function startFlow(folder: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): CliProcess {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    // A context that the developer uses is none of the tests' business.
    env: { PATH, HOME, XDG_CONFIG_HOME: join(folder, ".settings"), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<CliEnd>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
  const untilStderr = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => stderr.includes(text) && resolve();
      child.stderr.on("data", look);
      child.on("close", () => reject(new Error(`flow ended without saying '${text}':\n${stderr}`)));
      look();
    });
  return { process: child, untilStderr, ended };
}

/** Runs the command line to its end. */
export function flow(folder: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<CliEnd> {
  return startFlow(folder, args, environment).ended;
}

/** A folder with these files, removed after the test. */
export async function folderWith(
  context: Pick<TestContext, "after">,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-cli-"));
  // Run as root, a server's database belongs to another user, who must be able to enter; else it would be kept elsewhere.
  await chmod(folder, 0o755);
  // A server that is just being stopped may still write files into it.
  context.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

/** A document with this workflow; its path is its name. */
export function playbookText(name: string, workflow: string, head = ""): string {
  return `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}}\n${head}workflow:\n${workflow}`;
}
