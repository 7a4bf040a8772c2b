import { parsePort } from "../platform/address.ts";
import { loadConfig } from "../platform/config.ts";
import { createLogger } from "../platform/logger.ts";
import { packageVersion } from "../platform/package-file.ts";
import { type Ready, ROLES, serve } from "../roles/serve.ts";
import { type CliInput, EXIT, textOption } from "./command.ts";
import { cleanText } from "./text.ts";

/** `flow serve`: a role until SIGINT or SIGTERM, which is its ordinary end. Standard output says where it is, the log is on standard error. */
export async function runServe({ options, io }: CliInput): Promise<number> {
  const config = loadConfig(io.environment);
  const role = ROLES.find((name) => name === textOption(options, "role")) ?? "all";
  const host = textOption(options, "host");
  const port = textOption(options, "port");
  await serve({
    role,
    config,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: parsePort("--port", port) }),
    folder: io.folder,
    version: await packageVersion(),
    entry: process.argv[1] ?? "",
    logger: createLogger(config.logLevel, io.stderr, { role: role === "all" ? "server" : role }),
    signal: io.signal,
    onReady: (ready) => io.stdout.write(readyLine(ready)),
  });
  return EXIT.ok;
}

function readyLine(ready: Ready): string {
  if (ready.what === "worker") return `flow worker ${cleanText(ready.name)} is ready, server: ${ready.serverUrl}\n`;
  if (ready.what === "doctor") return `flow doctor is ready at ${ready.url}\n`;
  if (ready.what === "gateway") {
    const { url, callbackUrl, serverUrl } = ready;
    return `flow gateway is ready at ${url}, callbacks: ${callbackUrl}, server: ${serverUrl}\n`;
  }
  const gateway = ready.gatewayUrl === undefined ? "" : `, gateway: ${ready.gatewayUrl}`;
  return `flow is ready at ${ready.url}, data: ${cleanText(ready.data)}${gateway}\n${pageLine(ready)}`;
}

/** Where a person looks: a server that listens on every address is on this machine too. */
function pageLine({ url, hasPage }: { url: string; hasPage: boolean }): string {
  if (!hasPage) return "page: none, this installation was built without one ('npm run build' makes it)\n";
  return `page: ${url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")}/\n`;
}
