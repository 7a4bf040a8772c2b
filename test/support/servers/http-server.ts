import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as the server saw it. */
export interface RecordedRequest {
  method: string;
  /** Path and query. */
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A real HTTP server on a free port of the loopback interface. */
export interface TestHttpServer {
  /** `http://127.0.0.1:<port>`. */
  origin: string;
  port: number;
  /** Every request so far, in order of arrival. */
  requests: RecordedRequest[];
  /** Cuts off every open connection; new ones are taken. */
  closeConnections(): void;
  /** Ends at once, open connections included. */
  close(): Promise<void>;
}

/** Starts a server that answers with `handle`, which gets the request with its whole body; on a free port, or on the given one. */
export async function startHttpServer(
  handle: (request: RecordedRequest, response: ServerResponse) => void,
  onPort = 0,
): Promise<TestHttpServer> {
  const requests: RecordedRequest[] = [];
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const recorded = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString("utf8"),
      };
      requests.push(recorded);
      handle(recorded, response);
    });
  };
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(onPort, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests,
    closeConnections: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A port on which nothing listens: it was free a moment ago, and the system hands ports out in turn. */
export async function closedPort(): Promise<number> {
  const server = await startHttpServer(() => {});
  await server.close();
  return server.port;
}
