import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after } from "node:test";

/** A network between a client and a server on this machine, which can fail. */
export interface TcpProxy {
  readonly port: number;
  /** Ends every connection, and each new one at once, until `mend`. */
  cut(): void;
  /** Nothing gets through any more, and no connection is closed: neither on the connections that there are nor on new ones, until `mend`. */
  swallow(): void;
  /** The same for the connections that there are alone: a firewall has forgotten them. */
  forget(): void;
  mend(): void;
}

/** Forwards connections to `port` of this machine; it ends with the test file. */
export async function startTcpProxy(port: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const forgotten = new WeakSet<Socket>();
  let isCut = false;
  let isSwallowing = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(port, "127.0.0.1");
    if (isSwallowing) forgotten.add(client);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("data", (bytes: Buffer) => {
        if (!forgotten.has(client)) other.write(bytes);
      });
      socket.on("close", () => {
        sockets.delete(socket);
        // The other side does not learn that one has left either.
        if (!forgotten.has(client)) other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const forget = () => {
    for (const socket of sockets) forgotten.add(socket);
  };
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  after(() => {
    cut();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    swallow: () => {
      isSwallowing = true;
      forget();
    },
    forget,
    mend: () => {
      isCut = false;
      isSwallowing = false;
    },
  };
}
