import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import * as v from "valibot";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { CliIo } from "../command-line/command.ts";

/** A server that is called by a name, by its operator. */
export interface ServerContext {
  server: string;
  token?: string;
}

/** A gateway under a name, for a user who logs in. */
export interface GatewayContext {
  gateway: string;
  /** The `idp_domain` of the last login, for the next one. */
  domain?: string;
  session?: ContextSession;
}

/** What a login gave. */
export interface ContextSession {
  token: string;
  /** The logged-in user. */
  email: string;
  /** Its absolute end, RFC 3339 in UTC. */
  expiresAt: string;
}

/** What is called by a name: a server, or the gateway in front of one. */
export type NamedContext = ServerContext | GatewayContext;

/** The servers and gateways that this user knows, and the one in use. */
export interface Contexts {
  current?: string;
  contexts: Record<string, NamedContext>;
}

/** Characters allowed in a header; the error for any other would quote the token. */
const Token = v.pipe(v.string(), v.regex(/^[\x21-\x7e]+$/));

const ContextsFile = v.object({
  current: v.exactOptional(v.string()),
  contexts: v.record(
    v.string(),
    v.union([
      v.object({ server: v.string(), token: v.exactOptional(Token) }),
      v.object({
        gateway: v.string(),
        domain: v.exactOptional(v.string()),
        session: v.exactOptional(v.object({ token: Token, email: v.string(), expiresAt: v.string() })),
      }),
    ]),
  ),
});

/** Whether a text can be kept as a token, and be sent. */
export function isToken(text: string): boolean {
  return v.is(Token, text);
}

/** The context of this name, also for names like `constructor`. */
export function contextNamed({ contexts }: Contexts, name: string | undefined): NamedContext | undefined {
  return name !== undefined && Object.hasOwn(contexts, name) ? contexts[name] : undefined;
}

/** Where the contexts are kept: the system's folder for user settings. */
export function contextsFile({ environment }: CliIo): string {
  const given = process.platform === "win32" ? environment["APPDATA"] : environment["XDG_CONFIG_HOME"];
  // A relative folder is to be ignored (XDG base directory specification).
  const base = given !== undefined && isAbsolute(given) ? given : join(environment["HOME"] || homedir(), ".config");
  return join(base, "flow", "contexts.json");
}

/**
 * Reads the contexts; empty without a file. Throws `FlowError` FILE_UNREADABLE, or INVALID_SETTING for a file that flow did not
 * write, or that others may read although it can contain tokens.
 */
export async function readContexts(io: CliIo): Promise<Contexts> {
  const file = contextsFile(io);
  let text: string;
  try {
    const { mode } = await stat(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new FlowError("INVALID_SETTING", `${file} can be read by others and may hold tokens: chmod 600 ${file}`);
    }
    text = await readFile(file, "utf8");
  } catch (cause) {
    if (cause instanceof FlowError) throw cause;
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return { contexts: {} };
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${file}: ${messageOf(cause)}`, { cause });
  }
  try {
    return v.parse(ContextsFile, JSON.parse(text));
  } catch (cause) {
    // Its text stays out of the message: it may be a token.
    const hint = "Repair it, or delete it and add the contexts again";
    throw new FlowError("INVALID_SETTING", `${file} is not a file of contexts. ${hint}`, { cause });
  }
}

/** Writes the contexts, readable by this user alone, all or nothing. Throws `FlowError` FILE_UNREADABLE. */
export async function writeContexts(io: CliIo, contexts: Contexts): Promise<void> {
  const file = contextsFile(io);
  const draft = `${file}.${process.pid}`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(draft, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, file);
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw new FlowError("FILE_UNREADABLE", `Cannot write ${file}: ${messageOf(cause)}`, { cause });
  }
}
