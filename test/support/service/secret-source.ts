import type { ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import type { StoredCredential } from "../../../src/ports/credentials.ts";
import type { SecretSource } from "../../../src/ports/secret-source.ts";
import { createSecretSource } from "../../../src/roles/server/secret-source.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import type { SecretSourceOptions } from "../../../src/tools/secrets/secret-source.ts";
import { type RecordedRequest, startHttpServer, type TestHttpServer } from "../servers/http-server.ts";

/** A source that makes real requests, and the server that it makes them to. */
export interface SecretBench {
  server: TestHttpServer;
  source: SecretSource;
  signal: AbortSignal;
}

/** What the server answers: a status and a body, JSON unless it is text. */
export type Answer = readonly [status: number, body: Json];

/** Starts a server that answers `handle(request)`, and opens a source whose addresses are that server's as `options` say. */
export async function secretBench(
  t: TestContext,
  handle: (request: RecordedRequest) => Answer | undefined,
  options: (origin: string) => Partial<SecretSourceOptions> = () => ({}),
): Promise<SecretBench> {
  const server = await startHttpServer((request, response) => respond(response, handle(request)));
  const source = createSecretSource({ allowPrivate: "all", now: Date.now, ...options(server.origin) });
  t.after(async () => {
    await source.close();
    await server.close();
  });
  return { server, source, signal: new AbortController().signal };
}

/** Answers a request; undefined: the connection is cut. */
export function respond(response: ServerResponse, answer: Answer | undefined): void {
  if (answer === undefined) {
    response.destroy();
    return;
  }
  const [status, body] = answer;
  const isText = typeof body === "string";
  response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json" });
  response.end(isText ? body : JSON.stringify(body));
}

/** The fields of a body of form fields. */
export function formFields(body: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(body));
}

/** A credential of a test. */
export function credential(type: string, data: JsonObject, name = "reach"): StoredCredential {
  return { name, type, data };
}
