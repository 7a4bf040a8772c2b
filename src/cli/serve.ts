import { loadConfig, parsePort } from "../platform/config.ts";
import { createLogger } from "../platform/logger.ts";
import { packageVersion } from "../platform/package-file.ts";
import { ROLES, serve } from "../roles/serve.ts";
import { type CliInput, EXIT, textOption } from "./command.ts";
import { cleanText } from "./text.ts";

/** `flow serve`: a role until SIGINT or SIGTERM, which is its ordinary end. One line on standard output, the log on standard error. */
export async function runServe({ options, io }: CliInput): Promise<number> {
  const config = loadConfig(io.environment);
  const role = ROLES.find((name) => name === textOption(options, "role")) ?? "server";
  const host = textOption(options, "host");
  const port = textOption(options, "port");
  await serve({
    role,
    config,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: parsePort("--port", port) }),
    folder: io.folder,
    version: await packageVersion(),
    logger: createLogger(config.logLevel, io.stderr),
    signal: io.signal,
    onReady: ({ url, data }) => io.stdout.write(`flow is ready at ${url}, data: ${cleanText(data)}\n`),
  });
  return EXIT.ok;
}
