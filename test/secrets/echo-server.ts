import type { TestContext } from "node:test";
import { type RecordedRequest, startHttpServer, type TestHttpServer } from "../support/servers/http-server.ts";

/** A server that answers with what it was sent, 404 below `/missing`, and gives `granted` as an access token at `/token`. */
export async function startEchoServer(t: TestContext, granted: string): Promise<TestHttpServer> {
  const server = await startHttpServer((request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url === "/token") {
      response.end(JSON.stringify({ access_token: granted, token_type: "Bearer", expires_in: 3600 }));
      return;
    }
    response.setHeader("x-echo", encodeURIComponent(request.url));
    response.statusCode = request.url.startsWith("/missing") ? 404 : 200;
    response.end(JSON.stringify(request));
  });
  t.after(() => server.close());
  return server;
}

/** The bodies of the calls of a path, as JSON. */
export function bodiesOf(server: TestHttpServer, path: string): unknown[] {
  return requestsOf(server, path).map(({ body }) => JSON.parse(body) as unknown);
}

/** The calls of a path. */
export function requestsOf(server: TestHttpServer, path: string): RecordedRequest[] {
  return server.requests.filter(({ url }) => url.split("?")[0] === path);
}
