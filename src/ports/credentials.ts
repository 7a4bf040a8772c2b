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
   * The credential, or undefined if the name is unknown. `executionId` says which execution needs it: some credentials are
   * limited to certain playbooks.
   */
  find(name: string, executionId?: string): Promise<StoredCredential | undefined>;
}
