import { createPublicKey, generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { jwtVerify } from "jose";

/** A server with Cloud Storage's JSON API, and the token service of its account. */
export interface TestBucket {
  origin: string;
  bucket: string;
  /** Text of the account's key file. */
  account: string;
  objects: Map<string, Buffer>;
  /** What was asked for, as `GET /storage/…`. */
  asked: string[];
  /** Tokens that were given out. */
  tokens: string[];
  /** Every token so far is refused from now on. */
  withdraw(): void;
  /** Answers with this status instead, to all but tokens; undefined: as it should. */
  fault: number | undefined;
}

const BUCKET = "results-bucket";
const EMAIL = "flow@project.example";

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

/** Starts one on a free port; it checks every signature, and ends with the file's tests. */
export async function startTestBucket(): Promise<TestBucket> {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const state: TestBucket = {
    ...{ origin: "", bucket: BUCKET, account: "", objects: new Map(), asked: [], tokens: [], fault: undefined },
    withdraw: () => valid.clear(),
  };
  const valid = new Set<string>();
  const grant = async (request: IncomingMessage, response: ServerResponse) => {
    const form = new URLSearchParams((await bodyOf(request)).toString());
    const { payload, protectedHeader } = await jwtVerify(form.get("assertion") ?? "", createPublicKey(pem), {
      ...{ issuer: EMAIL, audience: `${state.origin}/token`, algorithms: ["RS256"] },
    });
    const isRight =
      form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer" &&
      payload["scope"] === "https://www.googleapis.com/auth/devstorage.read_write" &&
      protectedHeader.kid === "key-1" &&
      Number(payload.exp) - Number(payload.iat) <= 3_600;
    if (!isRight) return answer(response, 400, { error: "invalid_grant" });
    const token = randomUUID();
    valid.add(token);
    state.tokens.push(token);
    answer(response, 200, { access_token: token, expires_in: 3_600, token_type: "Bearer" });
  };
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "", "http://x");
    if (url.pathname === "/token") return grant(request, response);
    state.asked.push(`${request.method} ${url.pathname}`);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (!valid.has(token)) return answer(response, 401, { error: { message: "Invalid Credentials" } });
    if (state.fault !== undefined) return answer(response, state.fault, { error: { message: "as the test wants" } });
    return handle(state, url, request, response);
  };
  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => answer(response, 400, { error: String(error) }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  state.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const uri = `${state.origin}/token`;
  state.account = JSON.stringify({ client_email: EMAIL, private_key: pem, private_key_id: "key-1", token_uri: uri });
  return state;
}

async function handle(
  { bucket, objects }: TestBucket,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method === "POST" && url.pathname === `/upload/storage/v1/b/${bucket}/o`) {
    const body = await bodyOf(request);
    objects.set(url.searchParams.get("name") ?? "", body);
    return answer(response, 200, { kind: "storage#object", size: String(body.length) });
  }
  if (request.method === "GET" && url.pathname === `/storage/v1/b/${bucket}`) return answer(response, 200, {});
  const name = decodeURIComponent(url.pathname.split(`/storage/v1/b/${bucket}/o/`)[1] ?? "");
  const object = objects.get(name);
  if (object === undefined) return answer(response, 404, { error: { message: `No such object: ${name}` } });
  if (request.method === "DELETE") {
    objects.delete(name);
    response.writeHead(204).end();
    return;
  }
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  if (start === undefined) {
    response.writeHead(200, { "content-length": object.length }).end(object);
    return;
  }
  const part = object.subarray(Number(start), Number(end) + 1);
  const range = `bytes ${start}-${Number(start) + part.length - 1}/${object.length}`;
  response.writeHead(206, { "content-length": part.length, "content-range": range }).end(part);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
