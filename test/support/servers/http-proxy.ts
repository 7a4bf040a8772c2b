import { createServer, request as send } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** What a proxy was asked for. */
export interface ProxiedCall {
  method: string;
  /** An address as it was asked for: `http://name/path`, of CONNECT `name:443`. */
  target: string;
  authorization: string | undefined;
}

/** A proxy on a free port of the loopback interface, as companies have them. */
export interface TestProxy {
  /** `127.0.0.1:<port>` */
  host: string;
  calls: ProxiedCall[];
  close(): Promise<void>;
}

/**
 * Starts a proxy for which every name leads to the port of this machine that `portOf` gives; undefined: it refuses with 403.
 * Where `account` is given (`user:password`), others are answered with 407.
 */
export async function startHttpProxy(
  portOf: (hostname: string) => number | undefined,
  account?: string,
): Promise<TestProxy> {
  const calls: ProxiedCall[] = [];
  const sockets = new Set<Socket>();
  const wanted = account === undefined ? undefined : `Basic ${Buffer.from(account).toString("base64")}`;
  const take = (method: string, target: string, authorization: string | undefined) => {
    calls.push({ method, target, authorization });
    const { hostname } = new URL(method === "CONNECT" ? `http://${target}` : target);
    return wanted !== undefined && authorization !== wanted ? 407 : (portOf(hostname) ?? 403);
  };
  const server = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    const port = take(method, url, headers["proxy-authorization"]);
    if (port < 1_000) {
      response.writeHead(port).end("the proxy says no");
      return;
    }
    const { pathname, search } = new URL(url);
    const { "proxy-authorization": _own, ...others } = headers;
    const onward = send({ host: "127.0.0.1", port, method, path: pathname + search, headers: others }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  });
  server.on("connect", (request, socket: Socket, head: Buffer) => {
    const port = take("CONNECT", request.url ?? "", request.headers["proxy-authorization"]);
    if (port < 1_000) {
      socket.end(`HTTP/1.1 ${port} No\r\n\r\n`);
      return;
    }
    const onward = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("close", () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
