import { parsePort } from "../../platform/config/address.ts";
import { type Config, loadConfig, secretVariables } from "../../platform/config/config.ts";
import { forgetVariables } from "../../platform/system/forget-variables.ts";
import { packageVersion } from "../../platform/system/package-file.ts";
import { createLogger, type LogStream } from "../../platform/telemetry/logger.ts";
import { prettyLog } from "../../platform/telemetry/pretty-log.ts";
import { type Ready, ROLES, serve } from "../../roles/start-role.ts";
import { givenSecrets } from "../../roles/worker/parent-channel.ts";
import { defined } from "../../schema/words/defined.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { PLAIN, styleFor } from "../terminal/style.ts";
import { cleanText } from "../terminal/text.ts";

/** `flow serve`: runs a role until SIGINT or SIGTERM. Its address goes to standard output, its log to standard error. */
export async function runServe({ options, io }: CliInput): Promise<number> {
  const logFormat = textOption(options, "log-format");
  // The worker of the role `all` is a separate process, configured by its environment.
  const given = { ...io.environment, ...givenSecrets(io.environment) };
  const config = loadConfig({ ...given, ...defined({ FLOW_LOG_FORMAT: logFormat }) });
  forgetVariables(io.environment, secretVariables(io.environment));
  const role = ROLES.find((name) => name === textOption(options, "role")) ?? "all";
  const host = textOption(options, "host");
  const port = textOption(options, "port");
  await serve({
    role,
    config,
    ...defined({ host }),
    ...(port === undefined ? {} : { port: parsePort("--port", port) }),
    folder: io.folder,
    version: await packageVersion(),
    entry: process.argv[1] ?? "",
    logger: createLogger(config.logLevel, logStream(config, io), { role: role === "all" ? "server" : role }),
    signal: io.signal,
    onReady: (ready) => io.stdout.write(readyLine(ready)),
  });
  return EXIT.ok;
}

/** Where log lines go: to standard error, written for people where that is a terminal. */
function logStream(config: Config, io: CliIo): LogStream {
  const { stderr } = io;
  const format = config.logFormat ?? (stderr.isTTY === true ? "pretty" : "json");
  if (format === "json") return stderr;
  const colors = styleFor(stderr, io, false) !== PLAIN;
  return prettyLog(stderr, { colors, stacks: config.logLevel === "debug" || config.logLevel === "trace" });
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

/** The page's address; a server that listens on all addresses is reachable on this machine. */
function pageLine({
  url,
  publicUrl,
  hasPage,
}: {
  url: string;
  publicUrl: string | undefined;
  hasPage: boolean;
}): string {
  if (!hasPage) return "page: none, this installation was built without one ('npm run build' makes it)\n";
  if (publicUrl !== undefined) return `page: ${publicUrl}/\n`;
  return `page: ${url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")}/\n`;
}
