import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { after, before, test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { createHttpTool } from "../../../src/tools/http/http.ts";
import { closedPort, startHttpServer, type TestHttpServer } from "../../support/servers/http-server.ts";
import { TEST_TLS_CERTIFICATE, TEST_TLS_KEY } from "../../support/servers/tls.ts";
import { toolCall } from "../../support/service/tool-call.ts";

const LIMIT = 200_000;
const tool = createHttpTool({ egress: createEgressGuard({ allowPrivate: "all" }), responseBytesMax: LIMIT });

/** `/echo` answers what it got, `/status/<n>` that status, `/body?…` a body, `/to?url=…&status=…` a redirect. */
let server: TestHttpServer;
/** Another origin. */
let other: TestHttpServer;

before(async () => {
  server = await startHttpServer((request, response) => {
    const url = new URL(request.url, "http://server");
    const query = Object.fromEntries(url.searchParams);
    if (url.pathname === "/echo") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...request, query: [...url.searchParams] }));
    } else if (url.pathname.startsWith("/status/")) {
      response.writeHead(Number(url.pathname.slice(8)), { "content-type": "application/json", "retry-after": "7" });
      response.end(JSON.stringify({ error: { message: "no such luck" } }));
    } else if (url.pathname === "/body") {
      if (query["type"]) response.setHeader("content-type", query["type"]);
      if (query["coding"]) response.setHeader("content-encoding", query["coding"]);
      response.end(Buffer.from(query["base64"] ?? "", "base64"));
    } else if (url.pathname === "/to") {
      response.writeHead(Number(query["status"] ?? 302), { location: query["url"] });
      response.end("moved");
    } else if (url.pathname === "/loop") {
      response.writeHead(302, { location: "/loop" }).end();
    } else if (url.pathname === "/hang") {
      response.writeHead(200, { "content-type": "text/plain" });
      response.write("one");
    } else if (url.pathname === "/flood") {
      response.writeHead(200, { "content-type": "text/plain" });
      const more = () => {
        while (response.write("x".repeat(10_000))) {}
      };
      response.on("drain", more);
      more();
    } else if (url.pathname === "/cut") {
      response.writeHead(200, { "content-length": "100" });
      response.write("partly", () => response.destroy());
    } else {
      response.end();
    }
  });
  other = await startHttpServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request));
  });
});

after(async () => {
  await tool.close?.();
  await server.close();
  await other.close();
});

function run(config: JsonObject, more: Parameters<typeof toolCall>[1] = {}): Promise<ToolResult> {
  return tool.run(toolCall(config, more));
}

interface HttpResult {
  status_code: number;
  headers: JsonObject;
  url: string;
  elapsed: number;
  data: Json;
  encoding?: string;
}

function resultOf(result: ToolResult): HttpResult {
  assert.equal(result.error, undefined, result.error?.message);
  return result.data as unknown as HttpResult;
}

interface Echo {
  method: string;
  headers: Record<string, string | undefined>;
  body: string;
  query: [string, string][];
}

async function echo(config: JsonObject, more: Parameters<typeof toolCall>[1] = {}): Promise<Echo> {
  return resultOf(await run({ url: `${server.origin}/echo`, ...config }, more)).data as unknown as Echo;
}

function bodyUrl(body: string | Buffer, query: Record<string, string> = {}): string {
  const url = new URL("/body", server.origin);
  url.searchParams.set("base64", Buffer.from(body).toString("base64"));
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}

function toUrl(target: string, status = 302): string {
  return `${server.origin}/to?${new URLSearchParams({ url: target, status: String(status) })}`;
}

async function bodyData(body: string | Buffer, query: Record<string, string> = {}): Promise<Json> {
  return resultOf(await run({ url: bodyUrl(body, query) })).data;
}

test("a request gives status, lower-case headers, url, seconds and parsed data", async () => {
  const result = resultOf(await run({ url: `${server.origin}/echo?a=1` }));
  assert.equal(result.status_code, 200);
  assert.equal(result.headers["content-type"], "application/json");
  assert.equal(result.url, `${server.origin}/echo?a=1`);
  assert.ok(result.elapsed >= 0 && result.elapsed < 5);
  assert.equal((result.data as JsonObject)["method"], "GET");
});

test("params are added to the query: null is dropped, a list repeats", async () => {
  const { query } = await echo({
    endpoint: `${server.origin}/echo?z=0`,
    url: null,
    params: { a: 1, b: null, c: ["x", "y"], d: "ä &" },
  });
  assert.deepEqual(query, [
    ["z", "0"],
    ["a", "1"],
    ["c", "x"],
    ["c", "y"],
    ["d", "ä &"],
  ]);
});

test("data is a query for GET and DELETE, and a body for POST", async () => {
  assert.deepEqual((await echo({ data: { a: 1 } })).query, [["a", "1"]]);
  assert.deepEqual((await echo({ method: "delete", data: { a: 1 } })).query, [["a", "1"]]);
  assert.deepEqual((await echo({ data: "a=1&b=2" })).query, [
    ["a", "1"],
    ["b", "2"],
  ]);
  const posted = await echo({ method: "POST", data: { a: 1 } });
  assert.deepEqual([posted.query, posted.body], [[], '{"a":1}']);
});

for (const [name, config, type, body] of [
  ["json", { json: { a: [1, null] } }, "application/json", '{"a":[1,null]}'],
  ["json of a text", { json: "plain" }, "application/json", '"plain"'],
  ["payload", { payload: [1] }, "application/json", "[1]"],
  ["body that is text", { body: "hello" }, "text/plain; charset=utf-8", "hello"],
  ["body that is JSON text", { body: '{"a": 1}' }, "application/json", '{"a": 1}'],
  [
    "body with its own type",
    { body: "<a/>", headers: { "Content-Type": "application/xml" } },
    "application/xml",
    "<a/>",
  ],
  [
    "form",
    { data: { a: "1 2", b: ["x", "y"], c: null }, headers: { "content-type": "application/x-www-form-urlencoded" } },
    "application/x-www-form-urlencoded",
    "a=1+2&b=x&b=y",
  ],
] as [string, JsonObject, string, string][]) {
  test(`a POST sends ${name}`, async () => {
    const request = await echo({ method: "POST", ...config });
    assert.deepEqual([request.headers["content-type"], request.body], [type, body]);
  });
}

test("a multipart form is sent with its boundary", async () => {
  const request = await echo({ method: "POST", data: { a: "1" }, headers: { "content-type": "multipart/form-data" } });
  assert.match(request.headers["content-type"] ?? "", /^multipart\/form-data; boundary=/);
  assert.match(request.body, /name="a"\r\n\r\n1\r\n/);
});

for (const [name, auth, header, expected] of [
  ["bearer", { type: "bearer", token: "t0" }, "authorization", "Bearer t0"],
  ["basic", { type: "basic", username: "ada", password: "p:w" }, "authorization", "Basic YWRhOnA6dw=="],
  ["api_key", { type: "api_key", key: "k0" }, "x-api-key", "k0"],
  ["api_key in a header", { type: "api_key", header: "X-Token", key: "k0" }, "x-token", "k0"],
  ["oauth2 with a token", { type: "oauth2", access_token: "t1" }, "authorization", "Bearer t1"],
] as [string, JsonObject, string, string][]) {
  test(`inline auth ${name} is sent`, async () => {
    assert.equal((await echo({ auth })).headers[header], expected);
  });
  test(`a credential of type ${name} is sent`, async () => {
    const credential: Credential = { name: "c", type: String(auth["type"]), data: auth };
    assert.equal((await echo({}, { auth: { c: credential, default: credential } })).headers[header], expected);
  });
}

test("an api_key in the query is sent and does not stand in the result's url", async () => {
  const result = resultOf(
    await run({ url: `${server.origin}/echo?a=1`, auth: { type: "api_key", query: "key", key: "s3cret" } }),
  );
  assert.deepEqual((result.data as JsonObject)["query"], [
    ["a", "1"],
    ["key", "s3cret"],
  ]);
  assert.equal(result.url, `${server.origin}/echo?a=1`);
});

test("a user and password in the URL become basic authentication and leave the URL", async () => {
  const result = resultOf(await run({ url: `http://ada:p%3Aw@127.0.0.1:${server.port}/echo` }));
  assert.equal((result.data as unknown as Echo).headers["authorization"], "Basic YWRhOnA6dw==");
  assert.equal(result.url, `${server.origin}/echo`);
});

for (const [name, credential] of [
  ["a database's", { name: "db", type: "sqldb", data: {} }],
  ["one without its key", { name: "b", type: "bearer", data: {} }],
  ["oauth2 without a token", { name: "o", type: "oauth2", data: { client_id: "x" } }],
] as [string, Credential][]) {
  test(`a credential that HTTP cannot use (${name}) is a configuration error`, async () => {
    const result = await run({ url: server.origin }, { auth: { [credential.name]: credential } });
    assert.equal(result.error?.kind, "configuration");
    assert.match(result.error?.message ?? "", new RegExp(`"${credential.name}"`));
  });
}

test("unsafe methods carry the task run's id as idempotency key, safe ones none", async () => {
  assert.equal((await echo({ method: "POST" }, { taskRunId: "run-7" })).headers["idempotency-key"], "run-7");
  assert.equal((await echo({ method: "PUT", idempotency_key: "mine" })).headers["idempotency-key"], "mine");
  assert.equal((await echo({ method: "POST", headers: { "Idempotency-Key": "h" } })).headers["idempotency-key"], "h");
  assert.equal((await echo({ method: "POST", idempotency_key: false })).headers["idempotency-key"], undefined);
  assert.equal((await echo({})).headers["idempotency-key"], undefined);
});

test("a trace goes out with the request, unless the task names another one", async () => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  assert.equal((await echo({}, { traceparent })).headers["traceparent"], traceparent);
  assert.equal((await echo({ headers: { Traceparent: "mine" } }, { traceparent })).headers["traceparent"], "mine");
  assert.equal((await echo({})).headers["traceparent"], undefined);
});

for (const [name, body, type, expected] of [
  ["JSON by its type", '{"a": 1}', "application/json", { a: 1 }],
  ["JSON without a type", "[1, 2]", "", [1, 2]],
  ["text", "hello", "text/plain", "hello"],
  ["broken JSON as text", '{"a": ', "application/json", '{"a": '],
  ["nothing as empty text", "", "application/json", ""],
  [
    "integers beyond 2^53 with all digits",
    '{"id": 12345678901234567890, "s": "98765432109876543210", "n": 9007199254740991, "f": 12345678901234567.5}',
    "application/json",
    { id: "12345678901234567890", s: "98765432109876543210", n: 9007199254740991, f: 12345678901234568 },
  ],
  ["a field called __proto__", '{"__proto__": {"x": 1}}', "application/json", JSON.parse('{"__proto__": {"x": 1}}')],
  ["latin-1 text", Buffer.from([0x67, 0x72, 0xfc, 0xdf]), "text/plain; charset=iso-8859-1", "grüß"],
  ["UTF-8 without a type", "grüß", "", "grüß"],
] as [string, string | Buffer, string, Json][]) {
  test(`a body is read as ${name}`, async () => {
    assert.deepEqual(await bodyData(body, { type }), expected);
  });
}

test("bytes that are no text come as base64 and say so", async () => {
  const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255]);
  const result = resultOf(await run({ url: bodyUrl(png, { type: "image/png" }) }));
  assert.deepEqual([result.data, result.encoding], [png.toString("base64"), "base64"]);
});

for (const [coding, bytes] of [
  ["gzip", gzipSync('{"a":1}')],
  ["deflate", deflateSync('{"a":1}')],
  ["deflate", deflateRawSync('{"a":1}')],
  ["br", brotliCompressSync('{"a":1}')],
  ["gzip, br", brotliCompressSync(gzipSync('{"a":1}'))],
] as [string, Buffer][]) {
  test(`a body packed with ${coding} (${bytes.length} bytes) is unpacked`, async () => {
    assert.deepEqual(await bodyData(bytes, { coding, type: "application/json" }), { a: 1 });
  });
}

for (const [name, coding, bytes, code] of [
  ["a gzip bomb", "gzip", gzipSync(Buffer.alloc(50_000_000)), "RESPONSE_TOO_LARGE"],
  ["a brotli bomb", "br", brotliCompressSync(Buffer.alloc(5_000_000)), "RESPONSE_TOO_LARGE"],
  ["damaged gzip", "gzip", Buffer.from("not gzip at all"), "CONTENT_ENCODING"],
  ["an unknown coding", "lzma", Buffer.from("x"), "CONTENT_ENCODING"],
  ["a coding repeated without end", "gzip,gzip,gzip,gzip,gzip", gzipSync("x"), "CONTENT_ENCODING"],
] as [string, string, Buffer, string][]) {
  test(`${name} is an error of code ${code}`, async (t) => {
    // The request line has room for 16 KB, so the bomb is served by a server of its own.
    const single = await startHttpServer((_, response) => response.setHeader("content-encoding", coding).end(bytes));
    t.after(() => single.close());
    const result = await run({ url: single.origin });
    assert.deepEqual([result.error?.kind, result.error?.code, result.error?.retryable], ["client_error", code, false]);
  });
}

test("a body that never ends is cut off at the limit, and so is a declared one", async (t) => {
  assert.equal((await run({ url: `${server.origin}/flood` })).error?.code, "RESPONSE_TOO_LARGE");
  const big = await startHttpServer((_, response) =>
    response.setHeader("content-length", LIMIT + 1).end(Buffer.alloc(LIMIT + 1)),
  );
  t.after(() => big.close());
  const { error } = await run({ url: big.origin });
  assert.match(error?.message ?? "", /declares 200001 bytes, more than the limit of 195 KiB/);
});

for (const [status, kind, retryable] of [
  [400, "client_error", false],
  [401, "auth", false],
  [403, "auth", false],
  [404, "not_found", false],
  [409, "client_error", false],
  [429, "rate_limit", true],
  [500, "server_error", true],
  [503, "server_error", true],
] as [number, string, boolean][]) {
  test(`status ${status} is an error of kind ${kind} that keeps the answer`, async () => {
    const result = await run({ url: `${server.origin}/status/${status}` });
    assert.equal(result.status, "error");
    assert.deepEqual(result.error, {
      kind,
      code: `HTTP_${status}`,
      message: `GET ${server.origin}/status/${status} answered ${status}: no such luck`,
      retryable,
      status,
      status_code: status,
    });
    assert.deepEqual((result.data as JsonObject)["data"], { error: { message: "no such luck" } });
    assert.equal(result.http?.status, status);
    assert.equal(result.http?.headers["retry-after"], "7");
  });
}

for (const [method, status, expected, body] of [
  ["POST", 301, "GET", ""],
  ["POST", 302, "GET", ""],
  ["PUT", 303, "GET", ""],
  ["POST", 307, "POST", '{"a":1}'],
  ["PUT", 308, "PUT", '{"a":1}'],
  ["DELETE", 302, "DELETE", '{"a":1}'],
] as [string, number, string, string][]) {
  test(`${method} redirected with ${status} goes on as ${expected}`, async () => {
    const request = resultOf(await run({ method, url: toUrl("/echo", status), json: { a: 1 } }));
    assert.equal(request.url, `${server.origin}/echo`);
    const { method: sent, body: got } = request.data as unknown as Echo;
    assert.deepEqual([sent, got], [expected, body]);
  });
}

test("a redirect within the origin keeps the secrets, one to another origin drops them", async () => {
  const config = {
    auth: { type: "bearer", token: "t" },
    headers: { Cookie: "c=1", "X-My-Token": "s", "X-Trace": "keep" },
  };
  const inside = resultOf(await run({ ...config, url: toUrl("/echo") })).data as unknown as Echo;
  assert.deepEqual(
    [inside.headers["authorization"], inside.headers["cookie"], inside.headers["x-my-token"]],
    ["Bearer t", "c=1", "s"],
  );
  const outside = resultOf(await run({ ...config, url: toUrl(`${other.origin}/x`) })).data as unknown as Echo;
  assert.deepEqual(
    [outside.headers["authorization"], outside.headers["cookie"], outside.headers["x-my-token"]],
    [undefined, undefined, undefined],
  );
  assert.equal(outside.headers["x-trace"], "keep");
});

test("an api_key header is dropped on the way to another origin", async () => {
  const config = { url: toUrl(`${other.origin}/x`), auth: { type: "api_key", header: "X-Plain", key: "k" } };
  assert.equal((resultOf(await run(config)).data as unknown as Echo).headers["x-plain"], undefined);
});

test("follow_redirects false gives the redirect itself", async () => {
  const result = resultOf(await run({ url: toUrl("/echo"), follow_redirects: false }));
  assert.deepEqual([result.status_code, result.headers["location"]], [302, "/echo"]);
});

test("a redirect without end stops after ten", async () => {
  const before = server.requests.length;
  assert.equal((await run({ url: `${server.origin}/loop` })).error?.code, "TOO_MANY_REDIRECTS");
  assert.equal(server.requests.length - before, 11);
});

test("a redirect to a scheme that is not http is refused", async () => {
  assert.equal((await run({ url: toUrl("file:///etc/passwd") })).error?.code, "REDIRECT_REFUSED");
});

test("the guard refuses a private address, by number, by name and behind a redirect", async (t) => {
  const open = createHttpTool({
    egress: createEgressGuard({
      allowPrivate: [`127.0.0.1`],
      resolve: () => Promise.resolve([{ address: "10.0.0.1", family: 4 }]),
    }),
  });
  t.after(() => open.close?.());
  for (const url of [
    "http://169.254.169.254/latest",
    "http://[::1]/",
    "http://2130706434/",
    "http://rebind.example/",
    toUrl("http://[::ffff:127.0.0.2]/"),
  ]) {
    const before = other.requests.length;
    const result = await open.run(toolCall({ url }));
    assert.deepEqual(
      [result.error?.kind, result.error?.code, result.error?.retryable],
      ["client_error", "EGRESS_REFUSED", false],
      url,
    );
    assert.equal(other.requests.length, before);
  }
  assert.equal((await open.run(toolCall({ url: `${server.origin}/echo` }))).status, "ok");
});

test("a refused connection is retryable and says so", async () => {
  const { error } = await run({ url: `http://127.0.0.1:${await closedPort()}/x` });
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["connection", "ECONNREFUSED", true]);
  assert.match(error?.message ?? "", /Nothing listens there/);
});

test("a name that does not resolve is a connection error", async (t) => {
  const missing = createHttpTool({
    egress: createEgressGuard({
      allowPrivate: "all",
      resolve: () =>
        Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND nowhere.invalid"), { code: "ENOTFOUND" })),
    }),
  });
  t.after(() => missing.close?.());
  const { error } = await missing.run(toolCall({ url: "http://nowhere.invalid/" }));
  assert.deepEqual([error?.kind, error?.code], ["connection", "ENOTFOUND"]);
  assert.match(error?.message ?? "", /Name or service not known/);
});

test("an answer that breaks off is a connection error", async () => {
  const { error } = await run({ url: `${server.origin}/cut` });
  assert.equal(error?.kind, "connection");
});

test("an answer that is not HTTP is a parse error", async (t) => {
  const rude = createTcpServer((socket) => socket.once("data", () => socket.end("SSH-2.0-OpenSSH\r\n")));
  rude.listen(0, "127.0.0.1");
  t.after(() => rude.close());
  await once(rude, "listening");
  const { error } = await run({ url: `http://127.0.0.1:${(rude.address() as AddressInfo).port}/` });
  assert.equal(error?.kind, "parse");
});

test("https to a server without TLS is a connection error that says so", async () => {
  const { error } = await run({ url: `https://127.0.0.1:${server.port}/` });
  assert.equal(error?.kind, "connection");
  assert.match(error?.message ?? "", /no TLS connection.*Does the server speak https/);
});

test("a self-signed certificate is refused with a hint, and accepted without verify_ssl", async (t) => {
  const secure = createTlsServer({ key: TEST_TLS_KEY, cert: TEST_TLS_CERTIFICATE }, (_, response) =>
    response.end("[1]"),
  );
  t.after(() => secure.close());
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}/`;
  const { error } = await run({ url });
  assert.deepEqual([error?.kind, error?.code], ["connection", "DEPTH_ZERO_SELF_SIGNED_CERT"]);
  assert.match(error?.message ?? "", /NODE_EXTRA_CA_CERTS.*verify_ssl: false/);
  // Text, as a template with more than an expression renders it.
  assert.deepEqual(resultOf(await run({ url, verify_ssl: "False" })).data, [1]);
  secure.closeAllConnections();
});

test("the signal ends a request that waits for its body, as a time-out or a cancellation", async () => {
  const timedOut = await run({ url: `${server.origin}/hang` }, { signal: AbortSignal.timeout(100) });
  assert.deepEqual([timedOut.error?.kind, timedOut.error?.retryable], ["timeout", true]);
  const controller = new AbortController();
  const running = run({ url: `${server.origin}/hang` }, { signal: controller.signal });
  setImmediate(() => controller.abort());
  assert.equal((await running).error?.kind, "cancelled");
});

for (const [name, config, expected] of [
  ["no url", {}, /has no URL/],
  ["a relative url", { url: "/path" }, /not an absolute URL/],
  ["another scheme", { url: "file:///etc/passwd" }, /scheme file: is not supported/],
  ["a method that is none", { url: "http://a", method: "G ET" }, /key "method": expects a method/],
  ["headers that are no map", { url: "http://a", headers: ["x"] }, /key "headers": expects a map/],
  [
    "follow_redirects that is neither",
    { url: "http://a", follow_redirects: "perhaps" },
    /key "follow_redirects": expects true or false/,
  ],
  ["an unknown type of auth", { url: "http://a", auth: { type: "digest" } }, /"digest", which HTTP does not know/],
] as [string, JsonObject, RegExp][]) {
  test(`${name} is a configuration error that names what is expected`, async () => {
    const { error } = await run(config);
    assert.deepEqual([error?.kind, error?.retryable], ["configuration", false]);
    assert.match(error?.message ?? "", expected);
  });
}

test("a header with a line break is a configuration error and sends nothing", async () => {
  const before = server.requests.length;
  const { error } = await run({ url: `${server.origin}/echo`, headers: { "x-a": "1\r\nx-b: 2" } });
  assert.equal(error?.kind, "configuration");
  assert.equal(server.requests.length, before);
});
