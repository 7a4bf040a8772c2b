import { createHash } from "node:crypto";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential } from "../contract/tool.ts";

/** How libpq's `sslmode` reads; the default is `prefer`. */
const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;

/** Address and login of a PostgreSQL server. */
export interface SqlConnection {
  /** A path (`/run/postgresql`) is a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  sslMode: (typeof SSL_MODES)[number];
  /** Who named the host and the port: an operator with a stored credential, or the playbook. */
  hostBy: "credential" | "playbook";
}

/**
 * The connection of a task: its credential, with the task's own keys taking precedence. Keys are accepted plain and as `db_*`
 * (language document, section 9), and as a connection string. Throws FlowError `INVALID_INPUT` that says how to give a
 * credential if it is missing.
 */
export function readSqlConnection(config: JsonObject, auth: Readonly<Record<string, Credential>>): SqlConnection {
  const credential = chooseCredential(auth);
  const inline = isJsonObject(config["auth"]) ? config["auth"] : {};
  const stored = connectionKeys(credential?.data ?? {});
  const written = { ...connectionKeys(inline), ...connectionKeys(config) };
  const keys = { ...stored, ...written };
  if (keys.host === undefined) {
    const subject =
      credential === undefined ? "The sqldb task has no credential" : `Credential "${credential.name}" has no host`;
    throw configurationError(
      `${subject}. Name one of type sqldb with "auth: <name>", whose data has host, port, user, password and database; ` +
        'or give these keys, or "connection_string", on the task.',
    );
  }
  const user = keys.user ?? "postgres";
  return {
    host: keys.host,
    port: readPort(keys.port),
    user,
    password: keys.password ?? "",
    database: keys.database ?? user,
    sslMode: readSslMode(keys.sslmode),
    hostBy:
      isAllowedBy(credential) && keys.host === stored.host && keys.port === stored.port ? "credential" : "playbook",
  };
}

/** Whether an operator allows the credential's host by storing it. One that is written in the playbook is its author's. */
function isAllowedBy(credential: Credential | undefined): boolean {
  return credential?.isStored === true && own(credential.data, "allow_private") !== false;
}

/** Names a connection in maps without showing its password. */
export function connectionKey(connection: SqlConnection): string {
  return createHash("sha256").update(JSON.stringify(connection)).digest("hex");
}

type Keys = Partial<Record<"host" | "port" | "user" | "password" | "database" | "sslmode", string>>;

/** Spellings of each key, each also with `db_` before it. */
const SPELLINGS: readonly [keyof Keys, readonly string[]][] = [
  ["host", ["host", "hostname", "server"]],
  ["port", ["port"]],
  ["user", ["user", "username"]],
  ["password", ["password", "pass"]],
  ["database", ["database", "dbname", "name"]],
  ["sslmode", ["sslmode", "ssl_mode", "ssl"]],
];
/** Spellings that mean something else without `db_`: `name` is the task's own name. */
const ONLY_PREFIXED = new Set(["name"]);

function connectionKeys(data: JsonObject): Keys {
  const keys: Keys = {};
  for (const name of ["connection_string", "dsn", "db_url", "database_url"]) {
    const text = own(data, name);
    if (typeof text === "string" && text !== "") Object.assign(keys, parseConnectionString(text));
  }
  for (const [key, spellings] of SPELLINGS) {
    for (const spelling of spellings) {
      const names = ONLY_PREFIXED.has(spelling) ? [`db_${spelling}`] : [spelling, `db_${spelling}`];
      const value = names
        .map((name) => own(data, name) as Json | undefined)
        .find((found) => found !== undefined && found !== null);
      if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
        keys[key] = String(value);
        break;
      }
    }
  }
  return keys;
}

/** No address is longer, and the pattern below takes time that grows with the square of a text without `=`. */
const CONNECTION_STRING_CHARS_MAX = 8_192;

/** `postgres://user:password@host:port/database?sslmode=…`, or libpq's `host=… dbname=…`. */
function parseConnectionString(text: string): Keys {
  if (text.length > CONNECTION_STRING_CHARS_MAX) throw notAConnectionString();
  if (/^postgres(ql)?:\/\//i.test(text)) return parseUrl(text);
  const keys: Record<string, string> = {};
  for (const [, name, quoted, plain] of text.matchAll(/(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))/g)) {
    keys[name!] = quoted === undefined ? plain! : quoted.replace(/\\(.)/g, "$1");
  }
  if (Object.keys(keys).length === 0) throw notAConnectionString();
  return connectionKeys(keys);
}

function parseUrl(text: string): Keys {
  if (!URL.canParse(text)) throw notAConnectionString();
  const url = new URL(text);
  const sslmode = url.searchParams.get("sslmode") ?? undefined;
  const host = url.searchParams.get("host") ?? url.hostname.replace(/^\[(.*)\]$/, "$1");
  const keys: Keys = {};
  if (host !== "") keys.host = percentDecoded(host);
  if (url.port !== "") keys.port = url.port;
  if (url.username !== "") keys.user = percentDecoded(url.username);
  if (url.password !== "") keys.password = percentDecoded(url.password);
  if (url.pathname.length > 1) keys.database = percentDecoded(url.pathname.slice(1));
  if (sslmode !== undefined) keys.sslmode = sslmode;
  return keys;
}

/** A `%` in a password that was not written as `%25` is the usual mistake. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw notAConnectionString();
  }
}

/** Without the text: it holds a password. */
function notAConnectionString(): Error {
  return configurationError(
    'The connection string is not one of PostgreSQL: write "postgres://user:password@host:5432/database" or "host=… dbname=…".',
  );
}

/**
 * The credential that a task means, undefined without one. Throws FlowError `INVALID_INPUT` when several could be meant.
 */
export function chooseCredential(auth: Readonly<Record<string, Credential>>): Credential | undefined {
  if (auth["default"] !== undefined) return auth["default"];
  const named = [...new Set(Object.values(auth))];
  if (named.length <= 1) return named[0];
  const sql = named.filter((credential) => ["sqldb", "postgres", "postgresql", "sql"].includes(credential.type));
  if (sql.length === 1) return sql[0];
  throw configurationError(
    `The sqldb task has ${named.length} credentials (${Object.keys(auth).join(", ")}) and cannot tell which one to use. Name one with "auth: <name>".`,
  );
}

function readPort(text: string | undefined): number {
  const port = Number(text ?? "5432");
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw configurationError(`The sqldb task's port is "${text}": a number from 1 to 65535 is expected.`);
}

function readSslMode(text: string | undefined): SqlConnection["sslMode"] {
  if (text === undefined) return "prefer";
  const word = text.toLowerCase();
  const mode = word === "true" ? "require" : word === "false" ? "disable" : word;
  const known = SSL_MODES.find((candidate) => candidate === mode);
  if (known !== undefined) return known;
  throw configurationError(`The sqldb task's sslmode is "${text}": one of ${SSL_MODES.join(", ")} is expected.`);
}
