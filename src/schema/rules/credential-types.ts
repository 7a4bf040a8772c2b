import { type JsonObject, own } from "../words/json.ts";
import { type SecretSchema, type SecretType, secretProblems } from "./secret-schema.ts";

/** Types of credentials (interface specification, Credential). */
export const CREDENTIAL_TYPES = [
  "sqldb",
  "oauth2",
  "bearer",
  "basic",
  "api_key",
  "service_account",
  "warehouse",
  "broker",
  "analytics_db",
  "custom",
] as const;
/** One of {@link CREDENTIAL_TYPES}. */
export type CredentialType = (typeof CREDENTIAL_TYPES)[number];

/** Keys that a type needs, and types of keys, needed or not. Other keys are allowed: a schema of the caller's can forbid them. */
const BUILT_IN: Readonly<Record<CredentialType, SecretSchema>> = {
  sqldb: typed({ host: "string", port: "integer", user: "string", password: "string", database: "string" }),
  oauth2: typed({ client_id: "string", client_secret: "string", token_url: "string" }, { scope: "string" }),
  bearer: typed({ token: "string" }),
  basic: typed({ username: "string", password: "string" }),
  // Sent as the header `X-API-Key` unless another header or a query parameter is named.
  api_key: typed({ key: "string" }, { header: "string", query: "string" }),
  service_account: typed({ client_email: "string", private_key: "string", token_uri: "string" }),
  warehouse: typed({ account: "string", user: "string", password: "string", warehouse: "string", database: "string" }),
  broker: typed({ url: "string" }),
  // Port 8123 and the database `default` where they are left out.
  analytics_db: typed({ host: "string", user: "string", password: "string" }, { port: "integer", database: "string" }),
  custom: {},
};

/** The other spelling of the keys of `sqldb`. */
const SQLDB_SPELLING = {
  host: "db_host",
  port: "db_port",
  user: "db_user",
  password: "db_password",
  database: "db_name",
};
/** What a warehouse takes as well. */
const INSTEAD_OF_PASSWORD = ["private_key", "token"];
/** One text instead of the keys. */
const CONNECTION_STRINGS = ["connection_string", "dsn", "db_url", "database_url"];

/**
 * All errors in the data of a credential at once: by the needs of its type, then by the caller's own schema (interface
 * specification, Credential schema object, which defines the wording). No message contains a value.
 */
export function credentialProblems(type: CredentialType, data: JsonObject, schema: SecretSchema = {}): string[] {
  const builtIn = schemaFor(type, data);
  return [...new Set([...secretProblems(builtIn, data), ...secretProblems(schema, data)])];
}

function schemaFor(type: CredentialType, data: JsonObject): SecretSchema {
  if (type === "sqldb") return sqldbSchema(data);
  const { required = [], ...rest } = BUILT_IN[type];
  const isInstead = type === "warehouse" && INSTEAD_OF_PASSWORD.some((name) => Object.hasOwn(data, name));
  return { ...rest, required: isInstead ? required.filter((name) => name !== "password") : required };
}

/** A field that data of a type have. */
export interface CredentialField {
  name: string;
  type: SecretType;
  required: boolean;
}

/** The known fields of a type, for forms and prompts; other fields are allowed. */
export function credentialFields(type: CredentialType): CredentialField[] {
  const { required = [], types = {} } = BUILT_IN[type];
  return Object.entries(types).map(([name, of]) => ({ name, type: of, required: required.includes(name) }));
}

/** The required type of a credential's field, from the credential's type or the caller's schema. */
export function fieldType(type: CredentialType, field: string, schema: SecretSchema = {}): SecretType | undefined {
  const plain = Object.entries(SQLDB_SPELLING).find(([, prefixed]) => type === "sqldb" && prefixed === field)?.[0];
  const types = [BUILT_IN[type].types ?? {}, schema.types ?? {}];
  return types
    .map((known) => own(known, plain ?? field) as SecretType | undefined)
    .find((known) => known !== undefined);
}

/** Each key in the spelling that is present; a missing key in the spelling of the others. */
function sqldbSchema(data: JsonObject): SecretSchema {
  const types = BUILT_IN.sqldb.types ?? {};
  const isPrefixed = Object.values(SQLDB_SPELLING).some((name) => Object.hasOwn(data, name));
  const spelled = Object.entries(SQLDB_SPELLING).map(([plain, prefixed]): [string, SecretType] => {
    const isGiven = Object.hasOwn(data, plain) || (!isPrefixed && !Object.hasOwn(data, prefixed));
    return [isGiven ? plain : prefixed, types[plain] ?? "string"];
  });
  const isOneText = CONNECTION_STRINGS.some((name) => Object.hasOwn(data, name));
  const texts = isOneText ? CONNECTION_STRINGS.map((name): [string, SecretType] => [name, "string"]) : [];
  return {
    required: isOneText ? [] : spelled.map(([name]) => name),
    types: Object.fromEntries([...spelled, ...texts]),
  };
}

function typed(needed: Record<string, SecretType>, optional: Record<string, SecretType> = {}): SecretSchema {
  return { required: Object.keys(needed), types: { ...needed, ...optional } };
}
