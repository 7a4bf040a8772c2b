import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after } from "node:test";

/** A network between a client and a server on this machine, which can fail. */
export interface TcpProxy {
  readonly port: number;
  /** Ends every connection, and each new one at once, until `mend`. */
  cut(): void;
  mend(): void;
}

/** Forwards connections to `port` of this machine; it ends with the test file. */
export async function startTcpProxy(port: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(port, "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
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
    mend: () => {
      isCut = false;
    },
  };
}
