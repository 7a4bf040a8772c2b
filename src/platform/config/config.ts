import { readFileSync } from "node:fs";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { canonicalKind } from "../../schema/words/task-kinds.ts";
import { createSecret, MASK, type Secret } from "../crypto/secret.ts";
import { addressRanges } from "../http/egress.ts";
import { PROXY_SETTINGS } from "../http/proxy.ts";
import { oneOf, type SettingDefinition, setting } from "../setting.ts";
import { parsePort, parseServerUrl, parseSocket } from "./address.ts";
import { DATABASE_SETTINGS } from "./database.ts";
import { GATEWAY_SETTINGS } from "./gateway.ts";
import { LOGIN_SETTINGS } from "./identity-providers.ts";
import { KEYCHAIN_SETTINGS } from "./keychain.ts";
import { PUBLIC_SETTINGS } from "./public-address.ts";
import { RESULT_SETTINGS } from "./results.ts";
import { SECRET_SETTINGS } from "./secrets.ts";
import { ADMIN_SETTINGS, DOCTOR_SETTINGS, SERVICE_SETTINGS } from "./service.ts";
import { TRACING_SETTINGS } from "./tracing.ts";
import { DUCKDB_SETTINGS, ISOLATION_SETTINGS, WORKER_SETTINGS } from "./worker.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const LOG_FORMATS = ["pretty", "json"] as const;

/** Every setting, its meaning and its default: the only list there is, and the only place that reads the environment. */
const SETTINGS = {
  credentialsFile: setting({
    name: "FLOW_CREDENTIALS_FILE",
    meaning: "JSON file {name: {type, data}} with the credentials of local runs",
    default: "none",
    parse: (text) => text,
  }),
  workerTools: setting({
    name: "FLOW_WORKER_TOOLS",
    meaning: "Kinds of task that may run, comma-separated, or 'all'",
    default: "all; of a worker with a server elsewhere, or a database of your own: all but shell",
    parse: (text) => (isAll(text) ? "all" : kinds("FLOW_WORKER_TOOLS", list(text))),
  }),
  httpAllowPrivate: setting({
    name: "FLOW_HTTP_ALLOW_PRIVATE",
    meaning: "Private and loopback address ranges that tools may reach: CIDR, comma-separated, or 'all' or 'none'",
    default: "all; of a worker with a server elsewhere, or a database of your own: none",
    parse: (text) => (isAll(text) ? "all" : addressRanges(list(text === "none" ? undefined : text))),
  }),
  python: setting({
    name: "FLOW_PYTHON",
    meaning: "Python interpreter (3.8 or later) of python tasks",
    default: "python3 on PATH",
    parse: (text) => text,
  }),
  templateEnv: setting({
    name: "FLOW_TEMPLATE_ENV",
    meaning: "Environment variables that templates may read as env.<NAME>, comma-separated",
    default: "none",
    parse: list,
  }),
  localCapacity: setting({
    name: "FLOW_LOCAL_CAPACITY",
    meaning: "Commands of one execution that a local run works on at a time",
    default: "64",
    parse: (text) => positive("FLOW_LOCAL_CAPACITY", text, 64),
  }),
  host: setting({
    name: "FLOW_HOST",
    meaning: "Address that a server listens on; anything but loopback needs tokens",
    default: "127.0.0.1",
    parse: (text) => text ?? "127.0.0.1",
  }),
  serverPort: setting({
    name: "FLOW_SERVER_PORT",
    meaning: "Port of the server's API; 0 takes a free one",
    default: "8082",
    parse: (text) => parsePort("FLOW_SERVER_PORT", text ?? "8082"),
  }),
  ...DATABASE_SETTINGS,
  brokerUrl: setting({
    name: "BROKER_URL",
    meaning: "NATS as nats://user:password@host:4222 or tls://…, servers of a cluster comma-separated",
    default: "none: notices stay in this process, workers poll",
    secret: true,
    parse: (text) => brokerUrl("BROKER_URL", text),
  }),
  home: setting({
    name: "FLOW_HOME",
    meaning: "Folder of what the embedded default keeps: its database and its keys",
    default: ".flow",
    parse: (text) => text ?? ".flow",
  }),
  serverToken: setting({
    name: "FLOW_SERVER_TOKEN",
    meaning: "Operator's token of the server's API, for the server and for commands that call it",
    default: "none: open, on loopback only",
    secret: true,
    parse: (text) => token("FLOW_SERVER_TOKEN", text),
  }),
  workerToken: setting({
    name: "FLOW_WORKER_TOKEN",
    meaning: "Workers' token of the server's API; needs FLOW_SERVER_TOKEN beside it",
    default: "none",
    secret: true,
    parse: (text) => token("FLOW_WORKER_TOKEN", text),
  }),
  authDisabled: setting({
    name: "FLOW_AUTH_DISABLED",
    meaning: "true lets a server without tokens listen beyond loopback: anyone who reaches it may do anything",
    default: "false",
    parse: (text) => flag("FLOW_AUTH_DISABLED", text, false),
  }),
  serverUrl: setting({
    name: "FLOW_SERVER_URL",
    meaning: "Where workers and commands find the server",
    default: "the context in use, else http://127.0.0.1:8082",
    parse: (text) => (text === undefined ? undefined : parseServerUrl("FLOW_SERVER_URL", text)),
  }),
  serverSocket: setting({
    name: "FLOW_SERVER_SOCKET",
    meaning: "Unix socket that a server listens on too, and by which a worker on its machine calls it; else by TCP",
    default: "role all: one in FLOW_HOME; else none",
    parse: (text) => (text === undefined ? undefined : parseSocket("FLOW_SERVER_SOCKET", text)),
  }),
  ...SERVICE_SETTINGS,
  ...RESULT_SETTINGS,
  ...SECRET_SETTINGS,
  ...KEYCHAIN_SETTINGS,
  ...WORKER_SETTINGS,
  ...ISOLATION_SETTINGS,
  ...DUCKDB_SETTINGS,
  ...PROXY_SETTINGS,
  ...PUBLIC_SETTINGS,
  ...LOGIN_SETTINGS,
  ...TRACING_SETTINGS,
  ...GATEWAY_SETTINGS,
  ...ADMIN_SETTINGS,
  ...DOCTOR_SETTINGS,
  logLevel: setting({
    name: "FLOW_LOG_LEVEL",
    meaning: "Least important log lines that are written: trace, debug, info, warn, error, fatal or silent",
    default: "info",
    parse: (text) => oneOf("FLOW_LOG_LEVEL", text ?? "info", LOG_LEVELS),
  }),
  logFormat: setting({
    name: "FLOW_LOG_FORMAT",
    meaning: "How log lines look: pretty (short, for people) or json (one object per line)",
    default: "pretty on a terminal, else json",
    parse: (text) => (text === undefined ? undefined : oneOf("FLOW_LOG_FORMAT", text, LOG_FORMATS)),
  }),
} as const;

type Settings = typeof SETTINGS;

/** Typed, frozen values of all settings. */
export type Config = { readonly [K in keyof Settings]: ReturnType<Settings[K]["parse"]> } & {
  /** The environment of the settings, for values that are read by name: credentials and `env` of templates. */
  readonly environment: Readonly<NodeJS.ProcessEnv>;
};

/** Reads all settings. Throws `FlowError` INVALID_SETTING that lists every setting that cannot be used, not the first. */
export function loadConfig(given: Readonly<NodeJS.ProcessEnv> = process.env): Config {
  const environment = withSecretFiles(given);
  const problems: string[] = [];
  const entries = Object.entries(SETTINGS).map(([key, definition]) => {
    try {
      return [key, definition.parse(textOf(environment, definition))];
    } catch (error) {
      problems.push(messageOf(error));
      return [key, undefined];
    }
  });
  if (problems.length > 0) throw new FlowError("INVALID_SETTING", problems.join("\n"));
  // The keys are those of SETTINGS and each value is what its `parse` gave.
  return Object.freeze({ ...Object.fromEntries(entries), environment }) as Config;
}

/** Has a meaning of its own: one key per line. */
const OWN_MEANING = "FLOW_ENCRYPTION_KEYS_FILE";
/** No secret is longer; a wrong path may be a disk. */
const CHARS_MAX = 65_536;

/**
 * The environment, with the values of secrets that are given as files: FLOW_WORKER_TOKEN_FILE is the path of the file that holds
 * FLOW_WORKER_TOKEN. Line breaks and blanks at its ends do not count. Throws `FlowError` INVALID_SETTING for a file that cannot be
 * read, and where both are given.
 */
function withSecretFiles(environment: Readonly<NodeJS.ProcessEnv>): Readonly<NodeJS.ProcessEnv> {
  const read: Record<string, string> = {};
  for (const name of SECRET_NAMES) {
    const path = environment[`${name}_FILE`]?.trim() ?? "";
    if (path === "" || `${name}_FILE` === OWN_MEANING) continue;
    if ((environment[name] ?? "").trim() !== "") {
      throw new FlowError("INVALID_SETTING", `${name} and ${name}_FILE are both set: take one of them away`);
    }
    read[name] = readSecret(name, path);
  }
  return Object.keys(read).length === 0 ? environment : { ...environment, ...read };
}

function readSecret(name: string, path: string): string {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (text !== "" && text.length <= CHARS_MAX) return text;
  } catch (error) {
    throw new FlowError("INVALID_SETTING", `${name}_FILE: cannot read ${path}: ${messageOf(error)}`);
  }
  throw new FlowError("INVALID_SETTING", `${name}_FILE: ${path} is empty, or longer than a secret can be`);
}

/** Names of the settings that are secrets. */
const SECRET_NAMES: readonly string[] = Object.values(SETTINGS)
  .filter((definition: SettingDefinition<unknown>) => definition.secret === true)
  .map(({ name }) => name);

/** The variables of an environment that are secrets: settings, and the values of credentials. */
export function secretVariables(environment: Readonly<NodeJS.ProcessEnv>): string[] {
  return Object.keys(environment).filter((name) => SECRET_NAMES.includes(name) || name.startsWith("FLOW_CREDENTIAL_"));
}

/** True when the setting was given, and is not its default. */
export function isGiven(config: Config, key: keyof Settings): boolean {
  return textOf(config.environment, SETTINGS[key]) !== undefined;
}

/** The variables that templates may read as `env.<NAME>` (FLOW_TEMPLATE_ENV), if set. */
export function templateEnvironment({ templateEnv, environment }: Config): Record<string, string> {
  return Object.fromEntries(
    templateEnv.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
  );
}

/** The environment that this process was started with, for tools that pass a few names of it on. */
export function inheritedEnvironment(): Readonly<NodeJS.ProcessEnv> {
  return process.env;
}

/** One setting as `flow config` prints it. */
export interface SettingReport {
  name: string;
  value: string;
  default: string;
  source: "environment" | "default";
  meaning: string;
}

/** Every setting with its value, secrets masked, and where the value comes from. */
export function describeConfig(given: Readonly<NodeJS.ProcessEnv> = process.env): SettingReport[] {
  const environment = withSecretFiles(given);
  return Object.values(SETTINGS).map((definition: SettingDefinition<unknown>) => {
    const text = textOf(environment, definition);
    return {
      name: definition.name,
      value: text === undefined ? definition.default : definition.secret ? MASK : text,
      default: definition.default,
      source: text === undefined ? "default" : "environment",
      meaning: definition.meaning,
    };
  });
}

function textOf(
  environment: Readonly<NodeJS.ProcessEnv>,
  { name, alias }: Pick<SettingDefinition<unknown>, "name" | "alias">,
): string | undefined {
  return given(environment, name) ?? (alias === undefined ? undefined : given(environment, alias));
}

/** An empty variable counts as unset. */
function given(environment: Readonly<NodeJS.ProcessEnv>, name: string): string | undefined {
  const text = environment[name];
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}

function isAll(text: string | undefined): boolean {
  return text === undefined || text === "all";
}

function list(text: string | undefined): readonly string[] {
  const parts = (text ?? "").split(",").map((part) => part.trim());
  return Object.freeze(parts.filter((part) => part !== ""));
}

/** A misspelt kind would be switched off silently. */
function kinds(name: string, given: readonly string[]): readonly string[] {
  const known = given.map(canonicalKind);
  const unknown = given.filter((_, index) => !(RUNNABLE_KINDS as readonly string[]).includes(known[index] ?? ""));
  if (unknown.length === 0) return Object.freeze(known);
  const why = `${unknown.join(", ")} ${unknown.length === 1 ? "is no kind" : "are no kinds"} that this program runs`;
  throw new FlowError("INVALID_SETTING", `${name}: ${why}; use 'all', or some of ${RUNNABLE_KINDS.join(", ")}`);
}

function positive(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1) return number;
  throw new FlowError("INVALID_SETTING", `${name} must be a whole number from 1, got '${text}'`);
}

/** As with the database's: the text itself stays out of the message. */
function brokerUrl(name: string, text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  const isNats = (part: string) => {
    const url = URL.canParse(part.trim()) ? new URL(part.trim()) : undefined;
    return (url?.protocol === "nats:" || url?.protocol === "tls:") && url.hostname !== "";
  };
  if (text.split(",").every(isNats)) return createSecret(text);
  throw new FlowError("INVALID_SETTING", `${name} must look like nats://user:password@host:4222, or begin with tls://`);
}

/** Text that is invalid in an `Authorization` header would never match. */
function token(name: string, text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  if (/^[\x21-\x7e]+$/.test(text)) return createSecret(text);
  throw new FlowError("INVALID_SETTING", `${name} must be of visible ASCII characters, without spaces`);
}

function flag(name: string, text: string | undefined, fallback: boolean): boolean {
  return oneOf(name, text ?? String(fallback), ["true", "false"]) === "true";
}
