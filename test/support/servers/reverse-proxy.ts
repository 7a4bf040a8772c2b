import { createServer, type IncomingMessage, request as send } from "node:http";
import type { AddressInfo } from "node:net";

/** A reverse proxy in front of a server, on a free port of this machine. */
export interface ReverseProxy {
  /** `http://127.0.0.1:<port>` */
  origin: string;
  /** Where calls go: `http://127.0.0.1:<port>`. Until it is set they are answered with 503. */
  target: string;
  /** Paths that were asked for, and do not begin with the proxy's own path. */
  strays: string[];
  close(): Promise<void>;
}

/**
 * Passes on what is asked for beneath a path (`/flow`), as reverse proxies do: with the path, or, `strips`, without it.
 * Answers are passed on as they come, so streams are streams. Whatever stands elsewhere is not found.
 */
export async function startReverseProxy(path: string, strips: boolean): Promise<ReverseProxy> {
  const proxy: ReverseProxy = { origin: "", target: "", strays: [], close: () => Promise.resolve() };
  const onward = (url: string) => (strips ? url.slice(path.length) || "/" : url);
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    const { url = "/", method, headers } = incoming;
    if (url !== path && !url.startsWith(`${path}/`)) {
      // Browsers ask for this one by themselves.
      if (url !== "/favicon.ico") proxy.strays.push(url);
      outgoing.writeHead(404).end();
      return;
    }
    if (proxy.target === "") {
      outgoing.writeHead(503).end();
      return;
    }
    const passed = send(new URL(onward(url), proxy.target), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  proxy.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return proxy;
}
