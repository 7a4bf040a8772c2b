import { type Config, parseServerUrl } from "../platform/config.ts";
import { createSecret, type Secret } from "../platform/secret.ts";
import { FlowError } from "../schema/errors.ts";
import { type CliInput, textOption } from "./command.ts";
import { type Contexts, readContexts } from "./contexts.ts";

/** The server that a command calls. */
export interface ServerTarget {
  url: string;
  token?: Secret;
  /** How it was chosen, for the error when it cannot be reached. */
  origin: string;
}

const DEFAULT_URL = "http://127.0.0.1:8082";
/** {@link ServerTarget.origin} where nothing says which server is meant. */
export const DEFAULT_ORIGIN = "the default";

/**
 * Which server is meant: `--server`, `--context`, `FLOW_SERVER_URL`, the context in use, this machine; the first that is
 * given. The token is FLOW_SERVER_TOKEN, else that of the context; a context's token is never sent to another address.
 *
 * Throws `FlowError` NOT_FOUND for a context that does not exist, USAGE, and what reading the contexts throws.
 */
export async function serverTarget({ options, io }: CliInput, config: Config): Promise<ServerTarget> {
  const server = textOption(options, "server");
  const named = textOption(options, "context");
  if (server !== undefined && named !== undefined) {
    throw new FlowError("USAGE", "--server and --context were both given; which one is meant?");
  }
  const contexts = await readContexts(io);
  const { url, origin } = addressOf(contexts, config, server, named);
  const token = config.serverToken ?? contextToken(contexts, named ?? contexts.current, url);
  return { url, origin, ...(token === undefined ? {} : { token }) };
}

function addressOf(
  { current, contexts }: Contexts,
  { serverUrl }: Config,
  server: string | undefined,
  named: string | undefined,
): { url: string; origin: string } {
  if (server !== undefined) return { url: parseServerUrl("--server", server), origin: "--server" };
  if (named !== undefined) {
    const context = Object.hasOwn(contexts, named) ? contexts[named] : undefined;
    if (context !== undefined) return { url: context.server, origin: `context '${named}'` };
    throw new FlowError("NOT_FOUND", `There is no context '${named}'. 'flow context list' shows what there is`);
  }
  if (serverUrl !== undefined) return { url: serverUrl, origin: "FLOW_SERVER_URL" };
  const inUse = current !== undefined && Object.hasOwn(contexts, current) ? contexts[current] : undefined;
  if (inUse !== undefined) return { url: inUse.server, origin: `context '${current}'` };
  return { url: DEFAULT_URL, origin: DEFAULT_ORIGIN };
}

function contextToken({ contexts }: Contexts, name: string | undefined, url: string): Secret | undefined {
  const context = name !== undefined && Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (context?.token === undefined || context.server !== url) return undefined;
  return createSecret(context.token);
}
