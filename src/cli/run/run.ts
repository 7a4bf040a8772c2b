import { loadConfig } from "../../platform/config/config.ts";
import type { CliInput } from "../command-line/command.ts";
import { chooseRuntime } from "./choose-runtime.ts";

/**
 * `flow run`: one playbook from its document to its outcome, in this process or on a server. Gives the exit code; throws
 * `FlowError` for what keeps the run from beginning.
 */
export async function runPlaybook(input: CliInput): Promise<number> {
  const config = loadConfig(input.io.environment);
  const runtime = await chooseRuntime(input, config);
  if (runtime.where === "local") {
    // The tools and the local runtime are loaded for this alone.
    const { runLocally } = await import("./run-local.ts");
    return await runLocally(input, config);
  }
  const { runOnServer } = await import("./run-server.ts");
  return await runOnServer(input, runtime.target);
}
