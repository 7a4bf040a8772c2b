import type { JsonObject } from "../schema/words/json.ts";
import type { StoredCredential } from "./credentials.ts";

/** Kinds of keychain entries whose fields come by a request (interface specification, Keychain definition). */
export const REQUESTED_KINDS = ["secret_manager", "oauth2", "http", "google_id_token"] as const;
export type RequestedKind = (typeof REQUESTED_KINDS)[number];

/** Fields that were obtained. */
export interface ObtainedSecret {
  fields: JsonObject;
  /** How long they last, where the answer says so. */
  ttlSeconds?: number;
}

/** What a token is wanted for, where the credential itself does not say. */
export interface TokenOptions {
  scopes?: readonly string[];
  /** An identity token for this audience instead of an access token. */
  audience?: string;
}

/** A token and until when it may be used, milliseconds since 1970. */
export interface AccessToken {
  token: string;
  expiresAt: number;
}

/**
 * The source of tokens and secrets: token endpoints, secret managers, the machine's own identity. Every call throws
 * `FlowError`: INVALID_INPUT for an invalid request, UNAUTHENTICATED and NOT_FOUND for a refusal, UNAVAILABLE without an
 * answer, EGRESS_REFUSED for an address that may not be reached. Rejects with the signal's reason when it aborts.
 */
export interface SecretSource {
  /** The fields of an entry. `definition` is rendered; `credential` is the one that it names. */
  obtain(
    kind: RequestedKind,
    definition: JsonObject,
    credential: StoredCredential | undefined,
    signal: AbortSignal,
  ): Promise<ObtainedSecret>;
  /** Carries out a renewal (interface specification, Renewal configuration). Anything but HTTP 200 is a failure. */
  renew(config: JsonObject, signal: AbortSignal): Promise<ObtainedSecret>;
  /** The OAuth token of a credential: kept until shortly before it ends, requested once however many ask. */
  token(credential: StoredCredential, options: TokenOptions, signal: AbortSignal): Promise<AccessToken>;
  /** The token was refused by whom it was for: the next one is a fresh one. */
  forget(token: string): void;
  /** Closes its connections. */
  close(): Promise<void>;
}
