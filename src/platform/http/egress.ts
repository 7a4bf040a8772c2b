import { promises as dns, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { ProxyOf } from "./proxy.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [Address, number];

/**
 * Decides which addresses an outgoing request may reach. Without it, anyone who can register a playbook could read the
 * metadata service of a cloud machine or the private services beside the worker.
 */
export interface EgressGuard {
  /**
   * Throws FlowError `EGRESS_REFUSED` when `hostname` is a literal address that may not be reached. A name passes: its
   * addresses are checked by {@link lookup}, which a literal never reaches.
   */
  assertHost(hostname: string): void;
  /**
   * For `net.connect` and undici's connector. Checks every address of the name and hands exactly the checked ones to the
   * caller, so that a second, different answer of the name server (DNS rebinding) is never used. One refused address
   * refuses the name: a name with a public and a private address is not a mistake that we want to guess about.
   */
  readonly lookup: LookupFunction;
  /**
   * For calls through a proxy, which resolves the name again: throws the errors of {@link assertHost} and {@link lookup}, also
   * `ENOTFOUND` if this machine cannot resolve the name. If every address is allowed, nothing is resolved: behind a proxy
   * external names often do not resolve.
   */
  check(hostname: string): Promise<void>;
  /** The proxy that a call goes through; undefined for a direct one. */
  readonly proxyOf: ProxyOf;
}

/** What {@link createEgressGuard} takes. */
export interface EgressOptions {
  /** Private ranges that may be reached nevertheless (CIDR or single address), or all of them. */
  allowPrivate: "all" | readonly string[];
  /** Which calls go through a proxy; default none. */
  proxyOf?: ProxyOf | undefined;
  /** Resolves a name to all its addresses; default: the operating system's resolver. */
  resolve?: (hostname: string) => Promise<LookupAddress[]>;
}

/** Private networks (RFC 1918, 4193, 6598) and this machine. Link-local addresses are not among them. */
export const PRIVATE_RANGES: readonly string[] = [
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "::1/128",
  "fc00::/7",
];

/** Builds the guard. Throws FlowError `INVALID_SETTING` for a range that is not a CIDR. */
export function createEgressGuard(options: EgressOptions): EgressGuard {
  const allowed = options.allowPrivate === "all" ? "all" : options.allowPrivate.map(parseRange);
  const resolve = options.resolve ?? ((hostname) => dns.lookup(hostname, { all: true, verbatim: true }));

  async function resolveChecked(hostname: string, family: number): Promise<LookupAddress[]> {
    const addresses = await resolve(hostname);
    for (const { address } of addresses) assertAddress(address, hostname, allowed);
    const usable = family === 0 ? addresses : addresses.filter((entry) => entry.family === family);
    if (usable.length > 0) return usable;
    throw Object.assign(new Error(`${hostname} has no address that can be used`), { code: "ENOTFOUND", hostname });
  }

  function assertHost(hostname: string): boolean {
    const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
    if (isIP(bare) === 0) return false;
    assertAddress(bare, undefined, allowed);
    return true;
  }

  return {
    assertHost(hostname) {
      assertHost(hostname);
    },
    async check(hostname) {
      if (!assertHost(hostname) && allowed !== "all") await resolveChecked(hostname, 0);
    },
    proxyOf: options.proxyOf ?? (() => undefined),
    lookup(hostname, lookupOptions, callback) {
      resolveChecked(hostname, familyOf(lookupOptions.family)).then(
        (addresses) => {
          const first = addresses[0]!;
          if (lookupOptions.all === true) callback(null, addresses);
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, "", 0),
      );
    },
  };
}

function familyOf(family: number | "IPv4" | "IPv6" | undefined): number {
  if (family === "IPv4") return 4;
  if (family === "IPv6") return 6;
  return family ?? 0;
}

function assertAddress(text: string, hostname: string | undefined, allowed: "all" | Range[]): void {
  if (allowed === "all") return;
  const address = ipaddr.parse(text);
  const embedded = embeddedIPv4(address);
  const real = embedded ?? address;
  const allowing = allowed.filter((entry) => contains(entry, address) || contains(entry, real));
  // Wide ranges do not mean them.
  const isOfCloud = CLOUD_ADDRESSES.some((entry) => contains(entry, real));
  if (isOfCloud && !allowing.some(isSingle)) refuse(text, hostname, "an address at which a cloud serves its machines");
  const range = refusedRange(address, embedded);
  if (range !== undefined && allowing.length === 0) refuse(text, hostname, range);
}

function refuse(text: string, hostname: string | undefined, range: string): never {
  const subject = hostname === undefined ? `address ${text}` : `${hostname}, which resolves to ${text}`;
  throw new FlowError(
    "EGRESS_REFUSED",
    `Refused to connect to ${subject}: it is not a public address (${range}). ` +
      `If tasks may reach it, add ${text} or its range to FLOW_HTTP_ALLOW_PRIVATE.`,
  );
}

/**
 * Addresses at which clouds answer every machine, beside the link-local ones: Azure's platform (a public address), the metadata
 * services of AWS over IPv6 and of Alibaba Cloud. They are reached only where a setting names them, not a range around them.
 */
const CLOUD_ADDRESSES = ["168.63.129.16", "fd00:ec2::254", "100.100.100.200"].map(parseRange);

function isSingle([network, bits]: Range): boolean {
  return bits === (network.kind() === "ipv4" ? 32 : 128);
}

/** Why the address may not be reached, or undefined for a public one. */
function refusedRange(address: Address, embedded: ipaddr.IPv4 | undefined): string | undefined {
  // A translated address (NAT64, 6to4, mapped) reaches the IPv4 address inside it, so that one decides.
  if (embedded !== undefined) return nameUnlessPublic(embedded.range());
  if (address instanceof ipaddr.IPv4) return nameUnlessPublic(address.range());
  // Only 2000::/3 is handed out as global unicast. The library calls everything that it has no name for "unicast".
  if ((address.parts[0]! & 0xe000) !== 0x2000) return nameUnlessPublic(address.range()) ?? "reserved";
  return nameUnlessPublic(address.range());
}

function nameUnlessPublic(range: string): string | undefined {
  return range === "unicast" ? undefined : range;
}

/** The IPv4 address that an IPv6 address stands for: mapped, IPv4-compatible, NAT64 (RFC 6052) and 6to4. */
function embeddedIPv4(address: Address): ipaddr.IPv4 | undefined {
  if (address instanceof ipaddr.IPv4) return undefined;
  const parts = address.parts;
  const from = (index: number) =>
    new ipaddr.IPv4([parts[index]! >> 8, parts[index]! & 255, parts[index + 1]! >> 8, parts[index + 1]! & 255]);
  if (address.isIPv4MappedAddress()) return from(6);
  if (parts[0] === 0x64 && parts[1] === 0xff9b && parts.slice(2, 6).every((part) => part === 0)) return from(6);
  if (parts[0] === 0x2002) return from(1);
  return undefined;
}

function contains([network, bits]: Range, address: Address): boolean {
  return network.kind() === address.kind() && address.match(network, bits);
}

/** The ranges as written, after checking each. Throws FlowError `INVALID_SETTING` for an invalid one. */
export function addressRanges(ranges: readonly string[]): readonly string[] {
  for (const text of ranges) parseRange(text);
  return ranges;
}

function parseRange(text: string): Range {
  try {
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    const address = ipaddr.parse(text);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  } catch (error) {
    throw new FlowError(
      "INVALID_SETTING",
      `FLOW_HTTP_ALLOW_PRIVATE has "${text}", which is not an address range (${messageOf(error)}). ` +
        "Write CIDR ranges separated by commas, such as 10.0.0.0/8,127.0.0.1, or all or none.",
      { cause: error },
    );
  }
}
