import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";
import { runFlow } from "../cli/in-process.ts";
import type { CliEnd } from "../support/service/cli-process.ts";

/** The checkout: tests run from `<build folder>/test/examples`, while playbooks are read where they are written. */
export const ROOT = join(import.meta.dirname, "../../..");
/** Where the examples are, relative to {@link ROOT}. */
export const EXAMPLES = "playbooks/examples";

/** The bundle that `npm run build` makes, and not the compiled files that other tests import: a package may load otherwise. */
const PROGRAM = join(ROOT, "bin/flow.js");

/** Commands and the files that the program itself was run with. */
const wasRun = new Set<string>();

/**
 * Runs `flow <args>` as an author does: in the checkout, with no setting of ours but `env`. A command's first run with a file is the
 * program itself; those that follow are in this process, which takes a third of the time.
 */
export async function flow(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CliEnd> {
  const what = args.slice(0, 2).join(" ");
  if (wasRun.has(what)) return await runFlow(ROOT, args, env);
  wasRun.add(what);
  return await runProgram(args, env);
}

async function runProgram(args: readonly string[], env: Readonly<Record<string, string>>): Promise<CliEnd> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
    // A run that hangs fails its own test, and not the whole file much later.
    timeout: 120_000,
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code, stdout, stderr };
}

/** What `flow run --json` prints (language document, section 11), as far as these tests look. */
export interface RunReport {
  status: string;
  result: Json;
  error: { kind: string; code: string; message: string; step: string } | null;
  duration_ms: number;
  steps: { name: string; status: string; attempts: number; iterations?: JsonObject }[];
  stderr: string;
}

/** Runs one example to its end. Throws with what the program said when it gave no report. */
export async function runExample(
  name: string,
  inputs: JsonObject = {},
  env: Readonly<Record<string, string>> = {},
): Promise<RunReport> {
  const file = `${EXAMPLES}/${name}.yaml`;
  const exit = await flow(["run", file, "--runtime", "local", "--json", "--workload", JSON.stringify(inputs)], env);
  if (exit.stdout === "")
    throw new Error(`flow run ${file} gave no report and exited with ${exit.code}: ${exit.stderr}`);
  return { ...JSON.parse(exit.stdout), stderr: exit.stderr };
}

/** Status of each step by name: what the routing of an example came to. */
export function statuses(report: RunReport): Record<string, string> {
  return Object.fromEntries(report.steps.map((step) => [step.name, step.status]));
}

/** The API server of the examples, started as their README says, on a free port. */
export async function startExampleApi(): Promise<{ origin: string; close(): Promise<void> }> {
  const script = join(ROOT, EXAMPLES, "server/api.mjs");
  const child = spawn(process.execPath, [script, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const origin = /^Example API: (http:\S+)$/.exec(line)?.[1];
    if (origin === undefined) continue;
    return {
      origin,
      async close() {
        const exited = once(child, "exit");
        child.kill("SIGTERM");
        await exited;
      },
    };
  }
  throw new Error("The example API ended before it listened");
}
