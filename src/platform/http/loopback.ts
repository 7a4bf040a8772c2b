import ipaddr from "ipaddr.js";

/** True for a host name or address that only this machine reaches: `localhost`, 127.0.0.0/8, `::1` with or without brackets. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  // Browsers and resolvers keep every name below `localhost` on this machine (RFC 6761).
  if (bare === "localhost" || bare.endsWith(".localhost")) return true;
  return ipaddr.isValid(bare) && ipaddr.process(bare).range() === "loopback";
}

/** True for an absolute address, with its scheme, whose host is one of {@link isLoopback}. */
export function isLoopbackUrl(address: string): boolean {
  return URL.canParse(address) && isLoopback(new URL(address).hostname);
}
