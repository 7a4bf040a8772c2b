import { connect, isIP, type Socket } from "node:net";
import { createEgressGuard, type EgressGuard, PRIVATE_RANGES } from "../../platform/http/egress.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { SqlConnection } from "./connection.ts";

/** Who decides which servers may be reached. */
export interface SqlEgress {
  /** For hosts that a playbook names. */
  ofPlaybooks: EgressGuard;
  /** For hosts of stored credentials: private addresses too, but none that a cloud gives its machines' identities at. */
  ofCredentials: EgressGuard;
  /** Whether playbooks may name unix sockets. */
  allowsSockets: boolean;
}

/** The rules for databases, where tools may reach the private ranges `allowPrivate`. */
export function sqlEgress(allowPrivate: "all" | readonly string[], ofPlaybooks: EgressGuard): SqlEgress {
  const ranges = allowPrivate === "all" ? "all" : [...PRIVATE_RANGES, ...allowPrivate];
  return {
    ofPlaybooks,
    ofCredentials: createEgressGuard({ allowPrivate: ranges }),
    allowsSockets: allowPrivate === "all",
  };
}

/**
 * A connected socket to the server: to an address that was checked, and no other, whatever its name is resolved to later. Throws
 * FlowError `EGRESS_REFUSED`, and the system's error when no address answers within `timeoutMs`.
 */
export async function openSocket(connection: SqlConnection, egress: SqlEgress, timeoutMs: number): Promise<Socket> {
  const { host, port, hostBy } = connection;
  if (host.startsWith("/")) {
    if (hostBy === "playbook" && !egress.allowsSockets) throw socketRefused(host);
    return await connected(connect({ path: `${host}/.s.PGSQL.${port}` }), timeoutMs);
  }
  const guard = hostBy === "credential" ? egress.ofCredentials : egress.ofPlaybooks;
  guard.assertHost(host);
  const socket = connect({ host, port, ...(isIP(host) === 0 && { lookup: guard.lookup }) });
  // The driver takes the name for the certificate's check from here.
  return await connected(Object.assign(socket, { host, port }), timeoutMs);
}

function connected<T extends Socket>(socket: T, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => {
      const error = new Error("the server did not accept the connection in time");
      socket.destroy(Object.assign(error, { code: "CONNECT_TIMEOUT" }));
    };
    const timer = setTimeout(late, timeoutMs);
    const failed = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    socket.once("error", failed);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", failed);
      resolve(socket);
    });
  });
}

function socketRefused(host: string): FlowError {
  return new FlowError(
    "EGRESS_REFUSED",
    `Refused to connect to ${host}: it is a unix socket, which playbooks may not name here. An operator may store a credential ` +
      "with it.",
  );
}
