import type { Socket } from "node:net";

/** What a listener answers with. */
export interface Answers {
  /** `incoming` knows the connection: whose address it is. What comes through a unix socket comes from loopback. */
  fetch(request: Request, env: ListenerEnvironment): Response | Promise<Response>;
  malformed(): Response;
  /** Another protocol that connections may change to; without it every request for one is answered as any other. */
  upgrades?: Upgrades;
}

/** What a request comes with. `upgrade`: it asks for {@link Answers.upgrades}; what answers it says whether it may. */
export interface ListenerEnvironment {
  incoming: Incoming;
  upgrade?: { isLeaving: boolean; isAccepted: boolean };
}

/** As much of `IncomingMessage` as is asked for. */
export interface Incoming {
  socket: { remoteAddress?: string | undefined };
}

/** A protocol that a connection may change to. */
export interface Upgrades {
  /** As in the header `Upgrade`. */
  protocol: string;
  /** The one address that it is asked for at. */
  path: string;
  /** Takes a connection over that was upgraded. `head`: what came after the request. `headers`: of that request. */
  take(socket: Socket, head: Buffer, caller: { incoming: Incoming; headers: Record<string, string> }): void;
  /** The process is about to stop: there are no further connections, and those that are should make their calls elsewhere. */
  leave(): void;
  /** Resolves when every connection has ended. */
  close(): Promise<void>;
}
