import { parseServerUrl } from "../../platform/config/address.ts";
import type { Config } from "../../platform/config/config.ts";
import { createSecret, type Secret } from "../../platform/crypto/secret.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, textOption } from "../command-line/command.ts";
import { type Contexts, contextNamed, type NamedContext, readContexts } from "./contexts.ts";

/** The server that a command calls. */
export interface ServerTarget {
  url: string;
  /** The operator's, or of a session at a gateway. */
  token?: Secret;
  /** A gateway: whether it is to pass calls on to the server (`/flow/…`), or to answer them itself. */
  gateway?: "passes" | "answers";
  /** How it was chosen, for the error when it cannot be reached. */
  origin: string;
}

const DEFAULT_URL = "http://127.0.0.1:8082";
/** {@link ServerTarget.origin} if nothing names a server. */
export const DEFAULT_ORIGIN = "the default";

/**
 * Chooses the server: `--server`, `--context`, `FLOW_SERVER_URL`, the context in use, this machine; the first that is
 * given. The token is FLOW_SERVER_TOKEN, else that of the context; a context's token is never sent to another address. A
 * context that is a gateway is called with its session and nothing else: it knows no operator.
 *
 * Throws `FlowError` NOT_FOUND for a context that does not exist, USAGE, and what reading the contexts throws.
 */
export async function serverTarget({ options, io }: CliInput, config: Config): Promise<ServerTarget> {
  const server = textOption(options, "server");
  const named = textOption(options, "context");
  if (server !== undefined && named !== undefined) {
    throw new FlowError("USAGE", "--server and --context were both given; give only one");
  }
  const contexts = await readContexts(io);
  const chosen = chosenOf(contexts, config, server, named);
  if (chosen.context !== undefined && "gateway" in chosen.context) {
    const { gateway, session } = chosen.context;
    const { origin } = chosen;
    return { url: gateway, origin, gateway: "passes", ...(session && { token: createSecret(session.token) }) };
  }
  const { url = DEFAULT_URL, origin } = chosen;
  const token = config.serverToken ?? contextToken(contexts, named ?? contexts.current, url);
  return { url, origin, ...defined({ token }) };
}

function chosenOf(
  contexts: Contexts,
  { serverUrl }: Config,
  server: string | undefined,
  named: string | undefined,
): { url?: string; context?: NamedContext; origin: string } {
  if (server !== undefined) return { url: parseServerUrl("--server", server), origin: "--server" };
  if (named !== undefined) {
    const context = contextNamed(contexts, named);
    if (context !== undefined) return { ...addressOf(context), context, origin: `context '${named}'` };
    throw new FlowError("NOT_FOUND", `There is no context '${named}'. 'flow context list' lists them`);
  }
  if (serverUrl !== undefined) return { url: serverUrl, origin: "FLOW_SERVER_URL" };
  const inUse = contextNamed(contexts, contexts.current);
  if (inUse !== undefined) return { ...addressOf(inUse), context: inUse, origin: `context '${contexts.current}'` };
  return { origin: DEFAULT_ORIGIN };
}

function addressOf(context: NamedContext): { url?: string } {
  return "server" in context ? { url: context.server } : {};
}

function contextToken(contexts: Contexts, name: string | undefined, url: string): Secret | undefined {
  const context = contextNamed(contexts, name);
  if (context === undefined || "gateway" in context) return undefined;
  return context.token === undefined || context.server !== url ? undefined : createSecret(context.token);
}
