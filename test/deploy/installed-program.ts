import { spawn } from "node:child_process";
import type { TestContext } from "node:test";

/** How a program ended. */
export interface ProgramEnd {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs an installed program to its end with nothing but this environment. */
export function runProgram(
  command: readonly string[],
  folder: string,
  environment: NodeJS.ProcessEnv,
): Promise<ProgramEnd> {
  return start(command, folder, environment).ended;
}

/** A `flow serve` that is ready. */
export interface ServingProgram {
  url: string;
  stop(): Promise<ProgramEnd>;
}

/** Starts `serve` and waits until it says where it is ready. Stopped after the test, whatever happened. */
export async function serveProgram(
  context: TestContext,
  command: readonly string[],
  folder: string,
  environment: NodeJS.ProcessEnv,
): Promise<ServingProgram> {
  const { child, ended } = start(command, folder, environment);
  const stop = () => {
    child.kill("SIGTERM");
    return ended;
  };
  context.after(stop);
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (text: string) => {
      said += text;
      const found = /ready at (http:\/\/\S+),/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    ended.then(({ stderr }) => reject(new Error(`it ended before it was ready:\n${stderr}`)), reject);
  });
  return { url, stop };
}

function start([file = "", ...args]: readonly string[], folder: string, environment: NodeJS.ProcessEnv) {
  const child = spawn(file, args, { cwd: folder, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<ProgramEnd>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended };
}
