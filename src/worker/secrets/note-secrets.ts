import { SENSITIVE, type Secrets } from "../../engine/sealing/secrets.ts";
import type { CredentialSource } from "../../ports/credentials.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";
import type { Credential } from "../../tools/contract/tool.ts";

/**
 * Fields of a credential's data that are not secret: users, addresses, durations and counts. A message without the host's name
 * is useless, and a secret 5000 would be sealed in every result that contains the number. Of an address only the password is
 * secret.
 */
const OPEN_FIELDS = new RegExp(
  [
    "^(db_)?(host|hostname|server|port|user|username|database|dbname|name|schema)$",
    "^(type|header|query|url|endpoint|(token|auth)_ur[il]|client_email|client_id|project_id|account|warehouse|role)$",
    "^(region|sslmode|ssl|scopes?|audience|env|environment|version|retries|timeout\\w*|(max|min)_\\w+|\\w+_(ms|seconds|size))$",
  ].join("|"),
);

/** Fields of {@link OPEN_FIELDS} that are addresses: a password may stand in one. */
const ADDRESS_FIELDS = /^(url|endpoint|token_url|token_uri|auth_uri|host|server)$/;

/** The secret fields of a credential's data are secrets from here on. */
export function noteCredential(data: JsonObject, secrets: Pick<Secrets, "note">): void {
  secrets.note(data, { except: OPEN_FIELDS, addresses: ADDRESS_FIELDS });
}

/** The same credentials, requested by an execution; the secrets of each one found are noted. */
export function notingSource(source: CredentialSource, secrets: Secrets, executionId: string): CredentialSource {
  return {
    async find(name) {
      const credential = await source.find(name, executionId);
      if (credential !== undefined) noteCredential(credential.data, secrets);
      return credential;
    },
  };
}

/** Notes what an author wrote into `auth` instead of the name of a credential. */
export function notingAuth(auth: Record<string, Credential>, secrets: Secrets): Record<string, Credential> {
  for (const { data } of Object.values(auth)) noteCredential(data, secrets);
  return auth;
}

/** All of a sensitive result is a secret: the rest of its command may quote it. */
export function noteSensitive({ data, virtual, http }: ToolResult, secrets: Secrets): void {
  secrets.note(data, SENSITIVE);
  if (virtual !== undefined) secrets.note(virtual, SENSITIVE);
  if (http !== undefined) secrets.note(http.headers, SENSITIVE);
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
      ...(error.details !== undefined && { details: secrets.hideIn(error.details) }),
    },
    ...(py !== undefined && { py: { exception: py.exception, traceback: secrets.hide(py.traceback) } }),
  };
}
