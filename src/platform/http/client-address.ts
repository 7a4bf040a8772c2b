import ipaddr from "ipaddr.js";

/** An address, or a range of them: its first address, and how many of its bits count. */
export type AddressRange = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Addresses of X-Forwarded-For that are read: more than any chain of proxies. */
const FORWARDED_MAX = 20;

/**
 * The caller's address: the connection's peer, or if that is a trusted proxy, the last address of X-Forwarded-For that is not a
 * trusted proxy. Entries before it may be forged.
 */
export function clientAddress(
  remote: string | undefined,
  forwardedFor: string | undefined,
  trusted: readonly AddressRange[],
): string | undefined {
  let found = plain(remote ?? "");
  const forwarded = (forwardedFor ?? "").split(",").slice(-FORWARDED_MAX);
  while (found !== undefined && isWithin(found, trusted)) {
    const before = plain(forwarded.pop()?.trim() ?? "");
    if (before === undefined) break;
    found = before;
  }
  return found;
}

/** What callers are counted by: of IPv6 the network, as one caller has 2^64 addresses of it. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(":") : parsed.toString();
}

/** True for an address in one of the ranges. */
export function isWithin(address: string, ranges: readonly AddressRange[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some(([first, bits]) => parsed.kind() === first.kind() && parsed.match(first, bits));
}

/** IPv4 within IPv6 as IPv4; undefined for an invalid address. */
function plain(address: string): string | undefined {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : undefined;
}
