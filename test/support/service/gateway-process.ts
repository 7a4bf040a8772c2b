import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { callbackToken } from "../../../src/platform/crypto/callback-token.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { createLifecycle } from "../../../src/platform/system/lifecycle.ts";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { type RunningGateway, startGateway } from "../../../src/roles/gateway/gateway.ts";

/** The operator's token of the server behind the gateway. */
export const OPERATOR = "operator-token-canary-of-32-chars";
/** What callbacks bring. */
export const CALLBACK_TOKEN = callbackToken(createSecret(OPERATOR)).reveal();

/** A server that does what a test says, on a port of its own, and the streams of changes that gateways have opened there. */
export interface FakeServer {
  url: string;
  /** Every path that was asked for but the stream of changes, in order. */
  asked: string[];
  /** Tells the gateways. */
  change(data: unknown): void;
  /** Breaks the gateways' streams off; new ones are refused from then on. */
  breakOff(): void;
  close(): Promise<void>;
}

/** What a test answers. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Starts it; it ends with the test. */
export async function startFakeServer(context: TestContext, handle: Handler): Promise<FakeServer> {
  const streams = new Set<ServerResponse>();
  const asked: string[] = [];
  let isBroken = false;
  const server = createServer((request, response) => {
    if (request.url === "/api/auth/changes") {
      if (isBroken) return void response.writeHead(503).end();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('event: sessions\ndata: {"all":true}\n\n');
      streams.add(response);
      return;
    }
    asked.push(`${request.method} ${request.url}`);
    void handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  context.after(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    change(data) {
      for (const stream of streams) stream.write(`event: sessions\ndata: ${JSON.stringify(data)}\n\n`);
    },
    breakOff() {
      isBroken = true;
      for (const stream of streams) stream.destroy();
      streams.clear();
    },
    close,
  };
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** The body of a request, as JSON. */
export async function jsonOf<T>(request: IncomingMessage): Promise<T> {
  return JSON.parse(await text(request)) as T;
}

/** A gateway in this process. */
export interface TestGatewayRole extends RunningGateway {
  log(): string;
  stop(): Promise<void>;
}

/** Starts it on free ports; it ends with the test. `settings` are environment variables. */
export async function startTestGateway(
  context: TestContext,
  settings: Readonly<Record<string, string>>,
  host = "127.0.0.1",
): Promise<TestGatewayRole> {
  const config = loadConfig({
    FLOW_SERVER_TOKEN: OPERATOR,
    FLOW_GATEWAY_INTERNAL_PORT: "0",
    ...settings,
  });
  let log = "";
  const sink = new Writable({
    write(chunk, _, done) {
      log += String(chunk);
      done();
    },
  });
  const lifecycle = createLifecycle();
  const { signal } = new AbortController();
  context.after(() => lifecycle.stop());
  const gateway = await startGateway({ config, host, port: 0, logger: createLogger("debug", sink), lifecycle, signal });
  return { ...gateway, log: () => log, stop: () => lifecycle.stop() };
}
