import type { LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { type ConnectionOptions, connect, credsAuthenticator, type NatsConnection } from "nats";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { NatsTarget } from "./target.ts";

/** A server that is frozen, or a network that swallows packets, is noticed after two unanswered pings: 20–30 s. */
const PING_MS = 10_000;
const PINGS_MAX = 2;

/**
 * Connects to the first server of the target that answers. Every address passes the guard before it is dialled: names are
 * resolved here, and servers announced by the cluster are not used. A lost connection is not made again: the next task dials
 * anew. Throws FlowError `EGRESS_REFUSED`, or the last server's error.
 */
export async function connectNats(target: NatsTarget, guard: EgressGuard, timeoutMs: number): Promise<NatsConnection> {
  let failure: unknown;
  for (const server of target.servers) {
    try {
      return await connect({
        ...identityOf(target),
        ...tlsOf(target, server.host),
        servers: (await addressesOf(server.host, guard)).map((address) => listen(address, server.port)),
        name: "flow",
        noRandomize: true,
        resolve: false,
        ignoreClusterUpdates: true,
        reconnect: false,
        timeout: timeoutMs,
        pingInterval: PING_MS,
        maxPingOut: PINGS_MAX,
        noAsyncTraces: true,
      });
    } catch (error) {
      if (error instanceof FlowError) throw error;
      failure = error;
    }
  }
  throw failure;
}

async function addressesOf(host: string, guard: EgressGuard): Promise<string[]> {
  guard.assertHost(host);
  if (isIP(host) !== 0) return [host];
  return await new Promise((resolve, reject) => {
    guard.lookup(host, { all: true }, (error, found: string | LookupAddress[]) => {
      if (error !== null) reject(error);
      else resolve(typeof found === "string" ? [found] : found.map(({ address }) => address));
    });
  });
}

function listen(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function identityOf({ options, creds }: NatsTarget): ConnectionOptions {
  if (creds !== undefined) return { authenticator: credsAuthenticator(new TextEncoder().encode(creds)) };
  const { user, pass, token } = options;
  if (token !== undefined) return { token };
  return user === undefined ? {} : { user, pass: pass ?? "" };
}

/** The driver knows only the address, so the name for the certificate check is given here. */
function tlsOf({ options }: NatsTarget, host: string): ConnectionOptions {
  if (options.tls === undefined) return {};
  const tls: { servername?: string } = isIP(host) === 0 ? { servername: host } : {};
  return { tls: tls as ConnectionOptions["tls"] & object };
}
