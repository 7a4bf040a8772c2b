import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { nearest } from "../language/nearest.ts";
import { parseServerUrl } from "../platform/config.ts";
import { FlowError, messageOf } from "../schema/errors.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "./command.ts";
import { type Contexts, contextsFile, readContexts, type ServerContext, writeContexts } from "./contexts.ts";

/** `flow context add|use|list|remove`: the servers that commands call, by name. Tokens are never printed. */
export async function manageContexts(input: CliInput): Promise<number> {
  const [action, name] = input.arguments;
  const contexts = await readContexts(input.io);
  if (action === "list") return list(input, contexts);
  if (name === undefined) throw new FlowError("USAGE", `'flow context ${action}' needs the context's name`);
  if (action === "add") return await add(input, contexts, name);
  known(contexts, name);
  if (action === "use") return await save(input.io, { ...contexts, current: name }, `Commands now call '${name}'`);
  return await remove(input.io, contexts, name);
}

async function add({ options, io }: CliInput, contexts: Contexts, name: string): Promise<number> {
  if (!/^[A-Za-z0-9][\w.-]{0,62}$/.test(name)) {
    throw new FlowError("USAGE", `A context's name is of letters, digits, '.', '_' and '-', got '${name}'`);
  }
  const server = textOption(options, "server");
  if (server === undefined) throw new FlowError("USAGE", "'flow context add' needs the address: --server URL");
  const tokenFile = textOption(options, "token-file");
  const token = tokenFile === undefined ? undefined : await readToken(resolve(io.folder, tokenFile), tokenFile);
  const context: ServerContext = {
    server: parseServerUrl("--server", server),
    ...(token === undefined ? {} : { token }),
  };
  const isFirst = Object.keys(contexts.contexts).length === 0;
  const all = { ...contexts, contexts: { ...contexts.contexts, [name]: context } };
  const used = isFirst || contexts.current === name;
  const hint = used ? "; commands call it now" : `; 'flow context use ${name}' makes commands call it`;
  return await save(io, used ? { ...all, current: name } : all, `Context '${name}' is ${context.server}${hint}`);
}

/** From a file and not from the command line, which every user of the machine can see. `/dev/stdin` is a file, too. */
async function readToken(file: string, given: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new FlowError("FILE_UNREADABLE", `Cannot read --token-file ${given}: ${messageOf(cause)}`, { cause });
  });
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new FlowError("INVALID_INPUT", `--token-file ${given} must hold the token alone, in visible ASCII characters`);
}

async function remove(io: CliIo, contexts: Contexts, name: string): Promise<number> {
  const { [name]: _, ...others } = contexts.contexts;
  const { current, ...rest } = contexts;
  const kept = { ...rest, contexts: others };
  if (current === undefined || current === name) return await save(io, kept, `Context '${name}' is gone`);
  return await save(io, { ...kept, current }, `Context '${name}' is gone`);
}

function list({ options, io }: CliInput, { current, contexts }: Contexts): number {
  const items = Object.entries(contexts).map(([name, { server, token }]) => ({
    name,
    server,
    token: token !== undefined,
    current: name === current,
  }));
  if (options["json"] === true) {
    io.stdout.write(`${JSON.stringify({ contexts: items, file: contextsFile(io) }, null, 2)}\n`);
    return EXIT.ok;
  }
  const width = Math.max(0, ...items.map(({ name }) => name.length));
  for (const { name, server, token, current: inUse } of items) {
    io.stdout.write(`${inUse ? "*" : " "} ${name.padEnd(width)}  ${server}${token ? "  (with a token)" : ""}\n`);
  }
  if (items.length === 0) io.stderr.write("There is no context: 'flow context add <name> --server URL' makes one.\n");
  return EXIT.ok;
}

/** Throws `FlowError` NOT_FOUND that names the nearest one there is. */
function known({ contexts }: Contexts, name: string): void {
  if (Object.hasOwn(contexts, name)) return;
  const near = nearest(name, Object.keys(contexts));
  const hint = near === undefined ? "'flow context list' shows what there is" : `Did you mean '${near}'?`;
  throw new FlowError("NOT_FOUND", `There is no context '${name}'. ${hint}`);
}

async function save(io: CliIo, contexts: Contexts, said: string): Promise<number> {
  await writeContexts(io, contexts);
  io.stderr.write(`${said}.\n`);
  return EXIT.ok;
}
