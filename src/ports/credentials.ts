import type { JsonObject } from "../schema/words/json.ts";

/** A stored credential, decrypted. */
export interface StoredCredential {
  name: string;
  type: string;
  data: JsonObject;
}

/** Where a worker finds credentials by name. */
export interface CredentialSource {
  /**
   * The credential, or undefined when there is none of that name. `executionId` says which execution needs it: some are for
   * some playbooks alone.
   */
  find(name: string, executionId?: string): Promise<StoredCredential | undefined>;
}
