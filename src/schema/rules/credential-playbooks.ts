import { type JsonObject, own } from "../words/json.ts";

/** Which playbooks may use a credential whose owner does not say it: all, or none. */
export const CREDENTIAL_DEFAULTS = ["open", "restricted"] as const;
/** One of {@link CREDENTIAL_DEFAULTS}. */
export type CredentialDefault = (typeof CREDENTIAL_DEFAULTS)[number];

/** Key of a credential's `meta`: a list of paths and patterns of the playbooks that may use it. */
export const PLAYBOOKS_KEY = "playbooks";

/** The playbooks that may use a credential with this `meta`, and whether it says so itself (`listed`). */
export function credentialPlaybooks(
  meta: JsonObject | null,
  byDefault: CredentialDefault,
): { listed: boolean; patterns: string[] } {
  const written = meta === null ? undefined : own(meta, PLAYBOOKS_KEY);
  if (written === undefined || written === null) return { listed: false, patterns: byDefault === "open" ? ["**"] : [] };
  // A malformed list allows no playbook, rather than every one.
  const patterns = Array.isArray(written) ? written.filter((pattern) => typeof pattern === "string") : [];
  return { listed: true, patterns };
}
