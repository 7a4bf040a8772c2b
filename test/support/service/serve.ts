import type { TestContext } from "node:test";
import { type CliProcess, startFlow } from "./cli-process.ts";

/** A `flow serve` process that answers. */
export interface Serving extends CliProcess {
  url: string;
  /** Of its gateway; empty where it has none. */
  gatewayUrl: string;
}

/**
 * Starts `flow serve` on a free port, a server alone unless `args` name a role, and waits until it says that it is ready. It is
 * ended after the test, whatever happened: with SIGKILL where it does not stop in its own time.
 */
export async function startServe(
  context: Pick<TestContext, "after">,
  folder: string,
  environment: NodeJS.ProcessEnv = {},
  args: readonly string[] = [],
): Promise<Serving> {
  const role = args.includes("--role") ? [] : ["--role", "server"];
  const server = startFlow(folder, ["serve", "--port", "0", ...role, ...args], { HOME: folder, ...environment });
  context.after(async () => {
    server.process.kill("SIGTERM");
    await server.ended;
  });
  let said = "";
  const [, url = "", gatewayUrl = ""] = await new Promise<RegExpExecArray>((resolve, reject) => {
    server.process.stdout.on("data", (text: string) => {
      said += text;
      const found = /ready at (http:\/\/\S+),.*?(?:gateway: (\S+))?\n/.exec(said);
      if (found !== null) resolve(found);
    });
    server.ended.then(({ stderr }) => reject(new Error(`flow serve ended before it was ready:\n${stderr}`)), reject);
  });
  return { ...server, url, gatewayUrl };
}
