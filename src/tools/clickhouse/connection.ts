import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential } from "../contract/tool.ts";
import { authorityOf } from "../http/auth.ts";

/** Address and login of a ClickHouse server's HTTP interface. */
export interface ClickhouseConnection {
  /** Address without a path. */
  origin: URL;
  user: string;
  password: string;
  database: string;
  verifySsl: boolean;
  /** Authorities (PEM) that alone sign the server's certificate. */
  ca: string | undefined;
}

/** True for a credential whose database is spoken to over ClickHouse's HTTP interface. */
export function isClickhouse(credential: Credential | undefined): credential is Credential {
  return credential !== undefined && ["analytics_db", "clickhouse"].includes(credential.type.toLowerCase());
}

/**
 * The connection of a credential of type `analytics_db`: `host` (perhaps an address with its scheme), `port` (8123),
 * `user` (default), `password`, `database` (default), `secure` for https (the default with the ports 443 and 8443), `verify_ssl`,
 * `ca`.
 * Keys also as `db_*`; `database` on the task wins. Throws FlowError `INVALID_INPUT`.
 */
export function readClickhouseConnection(config: JsonObject, credential: Credential): ClickhouseConnection {
  const inline = isJsonObject(config["auth"]) ? config["auth"] : {};
  const text = (...names: string[]): string | undefined => {
    for (const layer of [inline, credential.data]) {
      for (const name of names.flatMap((plain) => [plain, `db_${plain}`])) {
        const value = own(layer, name);
        if (value !== undefined && value !== null && value !== "") return String(value);
      }
    }
    return undefined;
  };
  const host = text("host", "hostname", "url");
  if (host === undefined) throw configurationError(`Credential "${credential.name}" has no host.`);
  const database = config["database"];
  return {
    origin: originOf(credential.name, host, text("port"), isTrue(text("secure", "ssl"))),
    user: text("user", "username") ?? "default",
    password: text("password") ?? "",
    database: typeof database === "string" && database !== "" ? database : (text("database", "name") ?? "default"),
    verifySsl: text("verify_ssl")?.toLowerCase() !== "false",
    ca: authorityOf(credential.data, `credential "${credential.name}"`).ca,
  };
}

function originOf(name: string, host: string, port: string | undefined, secure: boolean): URL {
  const isSecure = secure || port === "443" || port === "8443";
  const bare = host.includes(":") && !host.includes("://") && !host.startsWith("[") && host.split(":").length > 2;
  const address = host.includes("://") ? host : `${isSecure ? "https" : "http"}://${bare ? `[${host}]` : host}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw configurationError(
      `Credential "${name}" has an invalid host: write a name or an address, and the port in its own field.`,
    );
  }
  if (port !== undefined) {
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
      throw configurationError(`Credential "${name}" has the port "${port}": a number from 1 to 65535 is expected.`);
    }
    url.port = port;
  } else if (url.port === "" && !host.includes("://")) {
    url.port = isSecure ? "8443" : "8123";
  }
  return new URL(url.origin);
}

function isTrue(text: string | undefined): boolean {
  return text !== undefined && ["true", "1", "yes", "on", "require"].includes(text.toLowerCase());
}
