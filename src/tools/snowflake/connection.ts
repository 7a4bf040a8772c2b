import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential } from "../contract/tool.ts";

/** How a warehouse knows us. */
export type SnowflakeLogin =
  | { by: "token"; token: string; tokenType: string | undefined }
  | { by: "key"; account: string; user: string; privateKey: string; passphrase: string | undefined }
  | { by: "password"; account: string; user: string; password: string };

/** Address, login and context of a Snowflake account. */
export interface SnowflakeConnection {
  /** Address without a path. */
  origin: URL;
  login: SnowflakeLogin;
  /** `warehouse`, `database`, `schema` and `role`, where given. */
  context: Readonly<Record<string, string>>;
}

/**
 * The connection of a task from its credential of type `warehouse` (alias `snowflake`), with the task's own keys winning:
 * `account` or `url`, and `user` with `password` or `private_key` (PEM, perhaps `private_key_passphrase`), or `token`
 * (perhaps `token_type`). Throws FlowError `INVALID_INPUT` that says what is missing.
 */
export function readSnowflakeConnection(
  config: JsonObject,
  auth: Readonly<Record<string, Credential>>,
): SnowflakeConnection {
  const credential = chooseSnowflake(auth);
  const inline = isJsonObject(config["auth"]) ? config["auth"] : {};
  const layers = [config, inline, credential?.data ?? {}];
  const text = (...names: string[]) => firstText(layers, names);
  const where = credential === undefined ? "The warehouse task" : `Credential "${credential.name}"`;
  const account = text("account", "sf_account");
  const url = text("url", "base_url", "host");
  if (account === undefined && url === undefined) {
    throw configurationError(
      `${where} has no account. Name a credential of type warehouse with "auth: <name>", whose data has account, user, ` +
        "password, warehouse and database.",
    );
  }
  const context: Record<string, string> = {};
  for (const name of ["warehouse", "database", "schema", "role"]) {
    const value = text(name, `sf_${name}`);
    if (value !== undefined) context[name] = value;
  }
  const origin = url === undefined ? accountOrigin(where, account ?? "") : parseOrigin(where, url);
  return { origin, login: readLogin(where, text, account ?? origin.hostname.split(".")[0]!), context };
}

function readLogin(where: string, text: (...names: string[]) => string | undefined, account: string): SnowflakeLogin {
  const token = text("token", "access_token");
  if (token !== undefined) return { by: "token", token, tokenType: text("token_type")?.toUpperCase() };
  const user = text("user", "username", "sf_user");
  if (user === undefined) throw configurationError(`${where} of type warehouse has no "user".`);
  const privateKey = text("private_key", "sf_private_key");
  if (privateKey !== undefined) {
    return { by: "key", account, user, privateKey, passphrase: text("private_key_passphrase") };
  }
  const password = text("password", "sf_password");
  if (password !== undefined) return { by: "password", account, user, password };
  throw configurationError(`${where} of type warehouse has no "password", "private_key" or "token".`);
}

function chooseSnowflake(auth: Readonly<Record<string, Credential>>): Credential | undefined {
  const named = [...new Set(Object.values(auth))];
  const usable = named.filter(({ type }) => ["warehouse", "snowflake", "custom"].includes(type.toLowerCase()));
  if (usable.length === 1) return usable[0];
  if (named.length === 0) return undefined;
  const list = named.map(({ name, type }) => `"${name}" (${type})`).join(", ");
  throw configurationError(
    `The warehouse task takes one credential of type warehouse, and has ${list}: name one with "auth: <name>".`,
  );
}

function firstText(layers: readonly JsonObject[], names: readonly string[]): string | undefined {
  for (const layer of layers) {
    for (const name of names) {
      const value = own(layer, name);
      if ((typeof value === "string" && value !== "") || typeof value === "number") return String(value);
    }
  }
  return undefined;
}

/** `org-account` and `locator.region` are host names; underscores stand as hyphens there. */
function accountOrigin(where: string, account: string): URL {
  if (!/^[\w.-]+$/.test(account)) {
    throw configurationError(
      `${where} has an invalid "account": write it as in myorg-myaccount or xy12345.eu-central-1.`,
    );
  }
  const host = account
    .toLowerCase()
    .replaceAll("_", "-")
    .replace(/\.snowflakecomputing\.(com|cn)$/, "");
  return new URL(`https://${host}.snowflakecomputing.com`);
}

function parseOrigin(where: string, text: string): URL {
  const address = text.includes("://") ? text : `https://${text}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "https:" || url?.protocol === "http:") return new URL(url.origin);
  throw configurationError(
    `${where} has an invalid "url": write it as in https://myorg-myaccount.snowflakecomputing.com.`,
  );
}
