import { FlowError } from "../../schema/words/errors.ts";
import { createSecret, type Secret } from "../crypto/secret.ts";
import { setting } from "../setting.ts";
import { parseDatabaseUrl } from "./database-address.ts";

/** Settings of the service's database. */
export const DATABASE_SETTINGS = {
  databaseUrl: setting({
    name: "FLOW_DATABASE_URL",
    meaning: "PostgreSQL 14 or later as postgres://user:password@host:port/database; without it an embedded one",
    default: "embedded PostgreSQL in FLOW_HOME",
    secret: true,
    parse: (text) => address("FLOW_DATABASE_URL", text),
  }),
  databaseDirectUrl: setting({
    name: "FLOW_DATABASE_DIRECT_URL",
    meaning:
      "The same database past its pooler, for migrations, partitions and hearing of changed sessions; may have another account, which owns the tables",
    default: "FLOW_DATABASE_URL",
    secret: true,
    parse: (text) => address("FLOW_DATABASE_DIRECT_URL", text),
  }),
  databaseCa: setting({
    name: "FLOW_DATABASE_CA",
    meaning: "File of the authorities (PEM) that sign the database's certificate; it is checked then",
    default: "sslrootcert of the address, else those that Node knows",
    parse: (text) => text,
  }),
  databasePrepare: setting({
    name: "FLOW_DATABASE_PREPARE",
    meaning: "Whether statements are prepared once per connection: auto, on or off; auto: unless a pooler is found",
    default: "auto",
    parse: (text = "auto") => {
      const value = (["auto", "on", "off"] as const).find((one) => one === text.toLowerCase());
      if (value !== undefined) return value;
      throw new FlowError("INVALID_SETTING", `FLOW_DATABASE_PREPARE must be one of auto, on, off, got '${text}'`);
    },
  }),
} as const;

/** The text itself stays out of the message: it may hold a password. */
function address(name: string, text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  parseDatabaseUrl(text, name);
  return createSecret(text);
}

/** The address with the authorities of `FLOW_DATABASE_CA`, unless it names its own or wants no encryption. */
export function withAuthorities(url: Secret, file: string | undefined): string {
  const text = url.reveal();
  if (file === undefined || /[?&](sslrootcert=|sslmode=disable(&|$))/.test(text)) return text;
  return `${text}${text.includes("?") ? "&" : "?"}sslrootcert=${encodeURIComponent(file)}`;
}
