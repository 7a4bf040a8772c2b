import { createRateLimit } from "../../platform/concurrency/rate-limit.ts";
import { networkOf } from "../../platform/http/client-address.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** Most keys in memory: some 20 MB. */
const KEYS_MAX = 100_000;

/** Counts a login of an address at a domain. Throws `FlowError` RATE_LIMITED with `detail.retry_after_seconds`. */
export type LoginLimit = (address: string, domain: string) => void;

/**
 * At most `perMinute` logins of one address at one domain, refilled evenly: after using them up a caller gets the next one
 * after 60/`perMinute` seconds. `now` is milliseconds.
 */
export function createLoginLimit(perMinute: number, now: () => number): LoginLimit {
  const limit = createRateLimit({ uses: perMinute, withinMs: 60_000, keysMax: KEYS_MAX, now });
  return (address, domain) => {
    const waitMs = limit(`${networkOf(address)} ${domain}`);
    if (waitMs === 0) return;
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
    const message = `Too many logins from this address: at most ${perMinute} a minute. Try again in ${seconds} s`;
    throw new FlowError("RATE_LIMITED", message, { detail: { retry_after_seconds: seconds } });
  };
}
