import type { CredentialSource } from "../../ports/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { refusal } from "./connection.ts";
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
      // The routes know no such name: an empty one would be the list, these two would leave the folder.
      if (name === "" || name === "." || name === "..") return undefined;
      const use = executionId === undefined ? "" : `&execution_id=${encodeURIComponent(executionId)}`;
      const path = `/api/credentials/${encodeURIComponent(wellFormed(name))}?include_data=true${use}`;
      const reply = await callUntilAnswered(parts, { method: "GET", path, timeoutMs: CALL_MS, signal });
      if (reply.status === 404) return undefined;
      if (reply.status !== 200) throw refusal(reply);
      const body = isJsonObject(reply.body) ? reply.body : {};
      const [type, data, called] = [own(body, "type"), own(body, "data"), own(body, "name")];
      if (typeof type === "string" && typeof called === "string" && isJsonObject(data))
        return { name: called, type, data };
      throw new FlowError("INVALID_INPUT", `The server's credential '${name}' has no data; is it of this version?`);
    },
  };
}

/** Half a character cannot be part of an address, nor of a name. */
function wellFormed(name: string): string {
  return name.replace(/\p{Surrogate}/gu, "\ufffd");
}
