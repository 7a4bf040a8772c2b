import { FlowError } from "../../schema/words/errors.ts";

/* The error texts of the keychain (interface specification, Errors); what follows the colon says why. */

/** How long an entry that could not be resolved is left alone, milliseconds: the store reports the failure for as long. */
export const FAILURE_KEPT_MS = 5_000;

/** The entry is nowhere, or could not be resolved. */
export function entryNotFound(name: string, why?: string): FlowError {
  return new FlowError("KEYCHAIN", `KEYCHAIN: Entry '${name}' not found${why === undefined ? "" : `: ${why}`}`);
}

/** The entry expired while the execution ran, and does not renew. */
export function entryExpired(name: string, expiredAt: number): FlowError {
  const when = new Date(expiredAt).toISOString();
  const hint = `it ended at ${when} and is not renewed; set 'auto_renew', or a longer 'ttl_seconds'`;
  return new FlowError("KEYCHAIN", `KEYCHAIN: Entry '${name}' expired: ${hint}`);
}

/** What is logged when a renewal fails, and what begins the error of the template. */
export function renewalText(name: string): string {
  return `KEYCHAIN: Failed to renew '${name}'`;
}

/** The entry was to be renewed, and could not be. */
export function renewalFailed(name: string, why: string): FlowError {
  return new FlowError("KEYCHAIN", `${renewalText(name)}: ${why}`);
}

/** A template that reads a field which nothing resolves. */
export function unresolved(name: string, why: string): FlowError {
  return new FlowError("KEYCHAIN", `KEYCHAIN: Entry '${name}' cannot be resolved: ${why}`);
}
