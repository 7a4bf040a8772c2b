import type { JsonObject } from "../schema/json.ts";

/** A stored credential, decrypted. */
export interface StoredCredential {
  name: string;
  type: string;
  data: JsonObject;
}

/** Where a worker finds credentials by name. */
export interface CredentialSource {
  /** The credential, or undefined when there is none of that name. */
  find(name: string): Promise<StoredCredential | undefined>;
}
