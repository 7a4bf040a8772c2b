import type { TokenCache } from "../../platform/crypto/token-cache.ts";
import type { StoredCredential } from "../../ports/credentials.ts";
import type { AccessToken, TokenOptions } from "../../ports/secret-source.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { SendSecret } from "./request.ts";
import type { SecretPath } from "./secret-path.ts";

/** Addresses of the three services that an operator has set; absent: their public ones. */
export interface SecretAddresses {
  googleUrl?: string;
  awsUrl?: string;
  azureUrl?: string;
  azureLoginUrl?: string;
}

/** What reading secrets needs. */
export interface ManagerParts {
  send: SendSecret;
  addresses: SecretAddresses;
  tokens: TokenCache;
  token(credential: StoredCredential, wish: TokenOptions, signal: AbortSignal): Promise<AccessToken>;
  /** Milliseconds since 1970. */
  now(): number;
}

/** One secret manager, as one credential reaches it. */
export interface SecretManager {
  /** The text of a secret. Throws `FlowError`. */
  read(path: SecretPath, signal: AbortSignal): Promise<string>;
  /** What a path says by the provider's own convention, where it has one. */
  readPath?(path: SecretPath): SecretPath;
}

/** Opens a manager for an entry. Throws `FlowError` INVALID_INPUT for a credential that cannot reach it. */
export type OpenManager = (
  parts: ManagerParts,
  definition: JsonObject,
  credential: StoredCredential | undefined,
) => SecretManager;
