import type { CredentialSource } from "../ports/credentials.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../schema/json.ts";
import type { ToolResult } from "../schema/outcome.ts";

/** Shorter texts are not hidden: replacing every `on` or `1` would hide the message and no secret. */
const SECRET_CHARS_MIN = 4;

/** Keys of a credential's data that are no secret: a message that hides the host's name helps nobody. */
const OPEN_KEYS =
  /^(db_)?(host|hostname|server|port|user|username|database|dbname|name|type|header|query|url|endpoint|token_url|token_uri|client_email|account|warehouse|sslmode)$/;

/**
 * The secrets that one command was given, by where they came from and not by what they look like. What the command tells
 * about itself, errors and log lines, passes through here; values that pass between tasks do not.
 */
export interface Secrets {
  /** Every text in `value` is a secret from here on. */
  note(value: Json): void;
  /** The text with each secret replaced by `[secret]`, written as it is or percent-encoded. */
  hide(text: string): string;
}

/** No secrets yet. */
export function createSecrets(): Secrets {
  const texts = new Set<string>();
  const note = (value: Json): void => {
    if (typeof value === "string" && value.length >= SECRET_CHARS_MIN) texts.add(value).add(encodeURIComponent(value));
    else if (Array.isArray(value)) for (const item of value) note(item);
    else if (isJsonObject(value)) for (const key of Object.keys(value)) note(own(value, key) as Json);
  };
  return {
    note,
    hide(text) {
      let hidden = text;
      // The longest first: a secret may contain another.
      for (const secret of [...texts].sort((left, right) => right.length - left.length)) {
        hidden = hidden.replaceAll(secret, "[secret]");
      }
      return hidden;
    },
  };
}

/** The same credentials; the secrets of each that is found are noted. */
export function notingSource(source: CredentialSource, secrets: Secrets): CredentialSource {
  return {
    async find(name) {
      const credential = await source.find(name);
      if (credential === undefined) return undefined;
      for (const key of Object.keys(credential.data)) {
        if (!OPEN_KEYS.test(key)) secrets.note(own(credential.data, key) as Json);
      }
      return credential;
    },
  };
}

/** The outcome with no secret in its error or its traceback. Its data stays: the next task may need it. */
export function hideSecrets(result: ToolResult, secrets: Secrets): ToolResult {
  if (result.error === undefined) return result;
  const { error, py } = result;
  return {
    ...result,
    error: {
      ...error,
      message: secrets.hide(error.message),
      ...(error.details !== undefined && { details: hideIn(error.details, secrets) }),
    },
    ...(py !== undefined && { py: { exception: py.exception, traceback: secrets.hide(py.traceback) } }),
  };
}

function hideIn(value: Json, secrets: Secrets): Json {
  if (typeof value === "string") return secrets.hide(value);
  if (Array.isArray(value)) return value.map((item) => hideIn(item, secrets));
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setOwn(copy, key, hideIn(own(value, key) as Json, secrets));
  return copy;
}
