import { parseServerUrl } from "../../platform/config/address.ts";
import type { Config } from "../../platform/config/config.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, textOption } from "../command-line/command.ts";
import { checkName } from "../server/context.ts";
import { type Contexts, contextNamed, type GatewayContext, readContexts } from "../server/contexts.ts";
import type { ServerTarget } from "../server/target.ts";

/** The gateway to log in at or out of, and its context. */
export interface LoginTarget {
  name: string;
  context: GatewayContext;
  /** All contexts, as read from the file. */
  contexts: Contexts;
  /** For calls that the gateway answers itself; without a token. */
  target: ServerTarget;
}

/**
 * Chooses the gateway: `--gateway`, else `--context`, else the context in use. The context of `--gateway` is that of
 * `--context`, else one that already has the gateway, else one named after its host.
 *
 * Throws `FlowError` USAGE or NOT_FOUND if no gateway is named, and what reading the contexts throws.
 */
export async function loginTarget({ options, io }: CliInput): Promise<LoginTarget> {
  const contexts = await readContexts(io);
  const gateway = textOption(options, "gateway");
  const named = textOption(options, "context");
  if (gateway !== undefined) {
    const address = parseServerUrl("--gateway", gateway);
    const name = named ?? nameFor(contexts, address);
    checkName(name);
    const known = gatewayOf(contexts, name);
    if (known === undefined && contextNamed(contexts, name) !== undefined) {
      throw new FlowError("USAGE", `Context '${name}' is a server: name the gateway's with another --context NAME`);
    }
    // A session is never sent to another address than its own.
    return targetOf(contexts, name, known?.gateway === address ? known : { gateway: address }, "--gateway");
  }
  const name = named ?? contexts.current;
  const context = gatewayOf(contexts, name);
  if (name !== undefined && context !== undefined) return targetOf(contexts, name, context, `context '${name}'`);
  if (named !== undefined && contextNamed(contexts, named) === undefined) {
    throw new FlowError("NOT_FOUND", `There is no context '${named}'. 'flow context list' lists them`);
  }
  const why = name === undefined ? "there is no context in use" : `context '${name}' is a server, which knows no users`;
  throw new FlowError("USAGE", `No gateway is selected: ${why}. Name one with --gateway URL`);
}

/** The warning that a login has no effect because the environment names a server. */
export function environmentOverride({ serverUrl }: Config): string | undefined {
  if (serverUrl === undefined) return undefined;
  return "FLOW_SERVER_URL is set and wins over the context in use: commands call that server unless --context is given";
}

function targetOf(contexts: Contexts, name: string, context: GatewayContext, origin: string): LoginTarget {
  return { name, context, contexts, target: { url: context.gateway, origin, gateway: "answers" } };
}

function gatewayOf(contexts: Contexts, name: string | undefined): GatewayContext | undefined {
  const context = contextNamed(contexts, name);
  return context !== undefined && "gateway" in context ? context : undefined;
}

function nameFor(contexts: Contexts, address: string): string {
  const known = Object.entries(contexts.contexts).find(([, it]) => "gateway" in it && it.gateway === address);
  if (known !== undefined) return known[0];
  const { hostname } = new URL(address);
  const name = /^[A-Za-z0-9][\w.-]{0,62}$/.test(hostname) ? hostname : "gateway";
  if (contextNamed(contexts, name) === undefined) return name;
  throw new FlowError(
    "USAGE",
    `A context '${name}' already exists for another address: name this one with --context NAME`,
  );
}
