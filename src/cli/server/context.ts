import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { nearest } from "../../language/words/nearest.ts";
import { parseServerUrl } from "../../platform/config/address.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { cleanText } from "../terminal/text.ts";
import {
  type Contexts,
  contextNamed,
  contextsFile,
  isToken,
  type NamedContext,
  readContexts,
  writeContexts,
} from "./contexts.ts";

/** `flow context …`: names for the servers and gateways that commands call. */
export const CONTEXT_ACTIONS = { add, use, list, remove } satisfies Record<string, CliAction>;

/** `flow context add`: names a server or gateway. Tokens are never printed. */
async function add(input: CliInput): Promise<number> {
  const [name = ""] = input.arguments;
  const contexts = await readContexts(input.io);
  checkName(name);
  const context = await contextOf(input);
  const isFirst = Object.keys(contexts.contexts).length === 0;
  const all = { ...contexts, contexts: { ...contexts.contexts, [name]: context } };
  const used = isFirst || contexts.current === name;
  const hint = used ? "; commands call it now" : `; 'flow context use ${name}' makes commands call it`;
  const login = "gateway" in context ? `; 'flow login --context ${name}' opens a session` : "";
  const message = `Context '${name}' is ${addressOf(context)}${hint}${login}`;
  return await save(input.io, used ? { ...all, current: name } : all, message);
}

/** `flow context use`: makes commands call a context. */
async function use({ arguments: [name = ""], io }: CliInput): Promise<number> {
  const contexts = await readContexts(io);
  requireContext(contexts, name);
  return await save(io, { ...contexts, current: name }, `Commands now call '${name}'`);
}

/** Throws `FlowError` USAGE for a name that a context cannot have. */
export function checkName(name: string): void {
  if (/^[A-Za-z0-9][\w.-]{0,62}$/.test(name)) return;
  throw new FlowError("USAGE", `A context's name consists of letters, digits, '.', '_' and '-'; got '${name}'`);
}

async function contextOf({ options, io }: CliInput): Promise<NamedContext> {
  const server = textOption(options, "server");
  const gateway = textOption(options, "gateway");
  const tokenFile = textOption(options, "token-file");
  if (server !== undefined && gateway !== undefined) {
    throw new FlowError("USAGE", "--server and --gateway were both given; a context is one of them. Add two");
  }
  if (gateway !== undefined) {
    if (tokenFile === undefined) return { gateway: parseServerUrl("--gateway", gateway) };
    throw new FlowError("USAGE", "--token-file is of a server; with a gateway 'flow login' opens a session");
  }
  if (server === undefined) {
    throw new FlowError("USAGE", "'flow context add' needs the address: --server URL, or --gateway URL");
  }
  const address = parseServerUrl("--server", server);
  return tokenFile === undefined
    ? { server: address }
    : { server: address, token: await readToken(resolve(io.folder, tokenFile), tokenFile) };
}

/** Where a context's calls go. */
function addressOf(context: NamedContext): string {
  return "gateway" in context ? context.gateway : context.server;
}

/** From a file and not from the command line, which every user of the machine can see. `/dev/stdin` is a file, too. */
async function readToken(file: string, given: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new FlowError("FILE_UNREADABLE", `Cannot read --token-file ${given}: ${messageOf(cause)}`, { cause });
  });
  const token = text.trim();
  if (isToken(token)) return token;
  throw new FlowError("INVALID_INPUT", `--token-file ${given} must hold the token alone, in visible ASCII characters`);
}

/** `flow context remove`: forgets a context and its token or session. */
async function remove({ arguments: [name = ""], io }: CliInput): Promise<number> {
  const contexts = await readContexts(io);
  requireContext(contexts, name);
  const { [name]: _, ...others } = contexts.contexts;
  const { current, ...rest } = contexts;
  const kept = { ...rest, contexts: others };
  const isInUse = current === undefined || current === name;
  return await save(io, isInUse ? kept : { ...kept, current }, `Context '${name}' was removed`);
}

/** `flow context list`: every context without its secrets. */
async function list({ options, io }: CliInput): Promise<number> {
  const { current, contexts } = await readContexts(io);
  const items = Object.entries(contexts).map(([name, context]) => itemOf(name, context, name === current));
  if (options["json"] === true) {
    io.stdout.write(`${JSON.stringify({ contexts: items, file: contextsFile(io) }, null, 2)}\n`);
    return EXIT.ok;
  }
  const width = Math.max(0, ...items.map(({ name }) => name.length));
  const now = Date.now();
  for (const [name, context] of Object.entries(contexts)) {
    const line = `${addressOf(context)}${contextNote(context, now)}`;
    io.stdout.write(`${name === current ? "*" : " "} ${name.padEnd(width)}  ${line}\n`);
  }
  if (items.length === 0) {
    io.stderr.write("No contexts yet: 'flow context add <name> --server URL' makes one, or 'flow login'.\n");
  }
  return EXIT.ok;
}

/** A context without its secrets. */
function itemOf(name: string, context: NamedContext, current: boolean) {
  if ("server" in context) return { name, server: context.server, token: context.token !== undefined, current };
  const { gateway, session } = context;
  const login = session === undefined ? null : { email: session.email, expires_at: session.expiresAt };
  return { name, gateway, session: login, current };
}

function contextNote(context: NamedContext, now: number): string {
  if ("server" in context) return context.token === undefined ? "" : "  (with a token)";
  const { session } = context;
  if (session === undefined) return "  (gateway; not logged in)";
  const until = Date.parse(session.expiresAt) > now ? "until" : "until, which is over,";
  return `  (gateway; ${cleanText(session.email)} ${until} ${cleanText(session.expiresAt)})`;
}

/** Throws `FlowError` NOT_FOUND that names the nearest one there is. */
function requireContext(contexts: Contexts, name: string): void {
  if (contextNamed(contexts, name) !== undefined) return;
  const near = nearest(name, Object.keys(contexts.contexts));
  const hint = near === undefined ? "'flow context list' lists them" : `Did you mean '${near}'?`;
  throw new FlowError("NOT_FOUND", `There is no context '${name}'. ${hint}`);
}

async function save(io: CliIo, contexts: Contexts, message: string): Promise<number> {
  await writeContexts(io, contexts);
  io.stderr.write(`${message}.\n`);
  return EXIT.ok;
}
