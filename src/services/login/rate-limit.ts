import { networkOf } from "../../platform/http/client-address.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** Most keys in memory: some 20 MB. Beyond that the oldest key is dropped. */
const KEYS_MAX = 100_000;
const MINUTE_MS = 60_000;

/** Counts a login of an address at a domain. Throws `FlowError` RATE_LIMITED with `detail.retry_after_seconds`. */
export type LoginLimit = (address: string, domain: string) => void;

/**
 * At most `perMinute` logins of one address at one domain, refilled evenly: after using them up a caller gets the next one
 * after 60/`perMinute` seconds. `now` is milliseconds.
 */
export function createLoginLimit(perMinute: number, now: () => number): LoginLimit {
  const buckets = new Map<string, { left: number; at: number }>();
  return (address, domain) => {
    const key = `${networkOf(address)} ${domain}`;
    const at = now();
    const known = buckets.get(key) ?? { left: perMinute, at };
    const left = Math.min(perMinute, known.left + ((at - known.at) * perMinute) / MINUTE_MS);
    const isAllowed = left >= 1;
    // Deleted first, so that the map's order is that of use.
    buckets.delete(key);
    buckets.set(key, { left: isAllowed ? left - 1 : left, at });
    if (buckets.size > KEYS_MAX) buckets.delete(buckets.keys().next().value ?? "");
    if (isAllowed) return;
    const seconds = Math.max(1, Math.ceil(((1 - left) * MINUTE_MS) / perMinute / 1_000));
    const message = `Too many logins from this address: at most ${perMinute} a minute. Try again in ${seconds} s`;
    throw new FlowError("RATE_LIMITED", message, { detail: { retry_after_seconds: seconds } });
  };
}
