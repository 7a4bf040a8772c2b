import type { CredentialSource } from "../../ports/credentials.ts";
import { isRefusal } from "../../schema/routes/answer.ts";
import { CREDENTIAL_ROUTES } from "../../schema/routes/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence of the server: a credential is small. */
const CALL_MS = 10_000;

/**
 * The server's credentials, decrypted there (interface specification, Credential references). Each is requested when it is
 * needed and not cached: the next task uses a replaced one, and each use is in the server's audit log. Failed requests are
 * repeated until `signal` aborts. `find` throws `FlowError` ENCRYPTION when the server lacks the key, and the signal's reason.
 */
export function createServerCredentials(parts: RetryParts, signal: AbortSignal): CredentialSource {
  return {
    async find(name, executionId) {
      const query = { include_data: "true", execution_id: executionId } as const;
      const input = { params: { identifier: name }, query, timeoutMs: CALL_MS, signal };
      const found = await callUntilAnswered(parts, CREDENTIAL_ROUTES.read, input).catch((error: unknown) => {
        if (isRefusal(error, 404)) return undefined;
        throw error;
      });
      if (found === undefined) return undefined;
      const { name: called, type, data } = found;
      if (data !== undefined) return { name: called, type, data };
      throw new FlowError("INVALID_INPUT", `The server's credential '${name}' has no data; is it of this version?`);
    },
  };
}
