import { createHash } from "node:crypto";
import { type NatsAddress, parseNatsAddress } from "../../platform/nats/address.ts";
import { defined } from "../../schema/words/defined.ts";
import { type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential } from "../contract/tool.ts";

/** Which NATS a task speaks to, and as whom. */
export interface NatsTarget {
  /** Each server by its host and port; any of them will do. */
  servers: { host: string; port: number }[];
  /** `user` and `pass`, or `token`, and `tls: {}` for encryption, as the driver takes them. */
  options: NatsAddress["options"];
  /** Text of a `.creds` file. */
  creds: string | undefined;
}

/**
 * The NATS server of a task: its credential of type `broker` (`url`, and `user` with `password`, `token` or `creds`, or without
 * a login), or the task's own `url`, which takes precedence. A user in the address counts if the credential has none. Throws
 * FlowError `INVALID_INPUT` that says how to give one; the message never contains the address, which may hold a password.
 */
export function readNatsTarget(config: JsonObject, auth: Readonly<Record<string, Credential>>): NatsTarget {
  const credential = chooseCredential(auth);
  const data = credential?.data ?? {};
  const url = textOf(config, "url", "nats_url") ?? textOf(data, "url", "nats_url", "broker_url", "servers");
  if (url === undefined) {
    const subject =
      credential === undefined ? "The nats task has no credential" : `Credential "${credential.name}" has no url`;
    throw configurationError(
      `${subject}. Name one of type broker with "auth: <name>", whose data has url (nats://host:4222) and, where the server ` +
        'asks for it, user and password, token or creds; or give "url" on the task.',
    );
  }
  const { servers, options } = parseAddress(url);
  const { user = undefined, pass = undefined, token = undefined, ...tls } = options;
  const inAddress = { ...(user !== undefined && { user, pass: pass ?? "" }), ...defined({ token }) };
  return {
    servers: servers.map(serverOf),
    options: { ...tls, ...(identity(data) ?? inAddress) },
    creds: textOf(data, "creds"),
  };
}

/** Names a target in maps without showing its secrets. */
export function targetKey(target: NatsTarget): string {
  return createHash("sha256").update(JSON.stringify(target)).digest("hex");
}

/** The servers for people. */
export function describeTarget({ servers }: NatsTarget): string {
  return servers.map(({ host, port }) => `${host}:${port}`).join(", ");
}

function parseAddress(url: string): NatsAddress {
  const parts = url.split(",").map((part) => part.trim());
  // `host:4222` would be read as an address of scheme `host`.
  const complete = parts.map((part) => (part.includes("://") ? part : `nats://${part}`));
  const isAddress = complete.every((part) => URL.canParse(part) && /^(nats|tls):\/\/.*[^/]/i.test(part));
  const address = isAddress ? parseNatsAddress(complete.join(",")) : undefined;
  if (address?.servers.every((server) => !server.startsWith(":")) === true) return address;
  throw configurationError(
    'The nats task\'s address is not one of NATS: write "nats://host:4222", or "tls://host:4222" for encryption.',
  );
}

function serverOf(server: string): { host: string; port: number } {
  const colon = server.lastIndexOf(":");
  return { host: server.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(server.slice(colon + 1)) };
}

function identity(data: JsonObject): NatsAddress["options"] | undefined {
  const user = textOf(data, "user", "username", "nats_user");
  if (user !== undefined) return { user, pass: textOf(data, "password", "pass", "nats_password") ?? "" };
  const token = textOf(data, "token", "nats_token");
  return token === undefined ? undefined : { token };
}

function textOf(data: JsonObject, ...keys: string[]): string | undefined {
  for (const key of keys) {
    const value = own(data, key) as Json | undefined;
    if (typeof value === "string" && value.trim() !== "") return value.trim();
    if (typeof value === "number") return String(value);
    if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string"))
      return value.join(",");
  }
  return undefined;
}

function chooseCredential(auth: Readonly<Record<string, Credential>>): Credential | undefined {
  if (auth["default"] !== undefined) return auth["default"];
  const named = [...new Set(Object.values(auth))];
  if (named.length <= 1) return named[0];
  const brokers = named.filter(({ type }) => type === "broker" || type === "nats");
  if (brokers.length === 1) return brokers[0];
  throw configurationError(
    `The nats task has ${named.length} credentials (${Object.keys(auth).join(", ")}) and cannot tell which one to use. Name one with "auth: <name>".`,
  );
}
