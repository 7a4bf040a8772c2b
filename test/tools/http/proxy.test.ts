import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { proxyRules } from "../../../src/platform/http/proxy.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { createHttpTool } from "../../../src/tools/http/http.ts";
import { startHttpProxy } from "../../support/servers/http-proxy.ts";
import { closedPort, startHttpServer } from "../../support/servers/http-server.ts";
import { TEST_TLS_CERTIFICATE, TEST_TLS_KEY } from "../../support/servers/tls.ts";
import { toolCall } from "../../support/service/tool-call.ts";

/* Calls through a proxy, and whom TLS connections trust: real servers and a real proxy on this machine. */

const plain = await startHttpServer((request, response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ host: request.headers.host, url: request.url, seen: Object.keys(request.headers) }));
});
const secure = createServer({ key: TEST_TLS_KEY, cert: TEST_TLS_CERTIFICATE }, (_request, response) => {
  response.end("secret service");
});
await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
const securePort = (secure.address() as AddressInfo).port;
after(async () => {
  secure.closeAllConnections();
  secure.close();
  await plain.close();
});

const portOf = (name: string) =>
  ({ "shop.example": plain.port, "safe.example": securePort, "inner.example": plain.port })[name];
/** What this machine's resolver says. */
const ADDRESSES: Record<string, string> = {
  "shop.example": "93.184.216.34",
  "safe.example": "93.184.216.35",
  "inner.example": "10.1.2.3",
};

interface Setup {
  env?: Record<string, string>;
  allowPrivate?: "all" | readonly string[];
  account?: string;
}

async function setup(t: TestContext, { env = {}, allowPrivate = [], account }: Setup = {}) {
  const proxy = await startHttpProxy(portOf, account === undefined ? undefined : decodeURIComponent(account));
  const address = `http://${account === undefined ? "" : `${account}@`}${proxy.host}`;
  const config = loadConfig({ HTTP_PROXY: address, HTTPS_PROXY: address, ...env });
  const resolved: string[] = [];
  const egress = createEgressGuard({
    allowPrivate,
    proxyOf: proxyRules(config),
    resolve: async (name) => {
      resolved.push(name);
      const found = ADDRESSES[name];
      if (found === undefined) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" });
      return [{ address: found, family: 4 }];
    },
  });
  const tool = createHttpTool({ egress, connectTimeoutMs: 5_000 });
  t.after(async () => {
    await tool.close?.();
    await proxy.close();
  });
  const get = (url: string, more: JsonObject = {}) => tool.run(toolCall({ url, ...more }));
  return { proxy, get, resolved };
}

test("http calls are passed on by the proxy, and its account reaches no server", async (t) => {
  const { proxy, get } = await setup(t, { account: "user:p%40ss" });
  const { data: result } = await get("http://shop.example/orders?day=1");
  const { data } = result as { data: { host: string; url: string; seen: string[] } };
  assert.deepEqual([data.host, data.url], ["shop.example", "/orders?day=1"]);
  assert.ok(!data.seen.includes("proxy-authorization"));
  const authorization = `Basic ${Buffer.from("user:p@ss").toString("base64")}`;
  assert.deepEqual(proxy.calls, [{ method: "GET", target: "http://shop.example/orders?day=1", authorization }]);
});

test("https calls go through a tunnel of the proxy, which sees no more than the name", async (t) => {
  const { proxy, get } = await setup(t);
  const { data: result } = await get("https://safe.example/a", { verify_ssl: false });
  assert.equal((result as { data: string }).data, "secret service");
  assert.deepEqual(proxy.calls, [{ method: "CONNECT", target: "safe.example:443", authorization: undefined }]);
  // The certificate is the target's, and it is checked.
  const untrusted = await get("https://safe.example/a");
  assert.match(String(untrusted.error?.message), /certificate is not trusted/);
});

for (const url of ["http://inner.example/", "https://inner.example/", "http://10.1.2.3/", "https://10.1.2.3/"]) {
  test(`the guard refuses ${url} before the proxy receives it`, async (t) => {
    const { proxy, get } = await setup(t);
    assert.equal((await get(url)).error?.code, "EGRESS_REFUSED");
    assert.deepEqual(proxy.calls, []);
  });
}

test("where every address may be reached, names are left to the proxy; else they must resolve here", async (t) => {
  const open = await setup(t, { allowPrivate: "all" });
  assert.equal((await open.get("http://shop.example/")).error, undefined);
  assert.deepEqual(open.resolved, []);
  const guarded = await setup(t);
  const { error } = await guarded.get("https://nowhere.example/");
  assert.equal(error?.code, "ENOTFOUND");
  assert.deepEqual(guarded.proxy.calls, []);
});

test("a proxy that refuses, wants an account or is not there is named", async (t) => {
  const { get, proxy } = await setup(t, { allowPrivate: "all" });
  const refused = await get("https://other.example/");
  assert.equal(refused.error?.code, "PROXY_REFUSED");
  assert.match(
    refused.error?.message ?? "",
    new RegExp(`the proxy http://${proxy.host} answered 403 to CONNECT other`),
  );
  const closed = `http://127.0.0.1:${await closedPort()}`;
  const gone = await setup(t, { env: { HTTP_PROXY: closed, HTTPS_PROXY: closed } });
  for (const url of ["http://shop.example/", "https://safe.example/"]) {
    const { error } = await gone.get(url);
    assert.equal(error?.code, "PROXY_UNREACHABLE");
    assert.equal(error?.retryable, true);
    assert.ok(error.message.includes(closed));
  }
});

test("what NO_PROXY names, and this machine, is called without the proxy", async (t) => {
  const { proxy, get } = await setup(t, { allowPrivate: "all", env: { NO_PROXY: ".example:81,127.0.0.0/8" } });
  const here = await get(`${plain.origin}/direct`);
  assert.equal((here.data as { data: { url: string } }).data.url, "/direct");
  assert.deepEqual(proxy.calls, []);
  await get("http://shop.example/");
  assert.equal(proxy.calls.length, 1);
});

test("names, endings, ports, addresses and ranges of NO_PROXY, in both spellings", () => {
  const rules = (noProxy: string) => proxyRules(loadConfig({ https_proxy: "proxy.corp:3128", no_proxy: noProxy }));
  const isDirect = (noProxy: string, url: string) => rules(noProxy)(new URL(url)) === undefined;
  const cases: [noProxy: string, url: string, direct: boolean][] = [
    ["", "https://a.test/", false],
    ["*", "https://a.test/", true],
    ["a.test", "https://a.test/", true],
    ["a.test", "https://b.a.test/", true],
    ["a.test", "https://ba.test/", false],
    [".a.test", "https://b.A.test/", true],
    ["*.a.test", "https://b.a.test/", true],
    ["a.test:8443", "https://a.test/", false],
    ["a.test:443", "https://a.test/", true],
    ["10.0.0.0/8", "https://10.9.8.7/", true],
    ["10.0.0.0/8", "https://11.9.8.7/", false],
    ["10.0.0.0/8", "https://name.test/", false],
    ["[2001:db8::1]:443", "https://[2001:db8::1]/", true],
    ["2001:db8::/32", "https://[2001:db8::7]/", true],
    ["b.test, a.test", "https://a.test/", true],
    ["", "https://localhost/", true],
    ["", "https://[::1]/", true],
    ["", "https://169.254.169.254/", true],
    // No proxy is set for http.
    ["", "http://a.test/", true],
  ];
  for (const [noProxy, url, direct] of cases) assert.equal(isDirect(noProxy, url), direct, `${noProxy} ${url}`);
  assert.equal(rules("")(new URL("https://a.test/"))?.origin, "http://proxy.corp:3128");
});

test("a proxy that cannot be used is refused at the start, without its password", () => {
  for (const HTTPS_PROXY of ["socks5://user:hidden@proxy:1080", "http://", "http://user:%zz@proxy"]) {
    assert.throws(
      () => loadConfig({ HTTPS_PROXY }),
      (error: Error) => /HTTPS_PROXY must look like/.test(error.message) && !error.message.includes("hidden"),
    );
  }
});

test("the authority of a credential is trusted for its calls alone", async (t) => {
  const tool = createHttpTool({ egress: createEgressGuard({ allowPrivate: "all" }) });
  t.after(() => tool.close?.());
  const credential = (ca?: string) => ({
    auth: { default: { name: "shop", type: "bearer", data: { token: "t", ...(ca !== undefined && { ca }) } } },
  });
  const url = `https://localhost:${securePort}/`;
  const trusted = await tool.run(toolCall({ url }, credential(TEST_TLS_CERTIFICATE)));
  assert.equal((trusted.data as { data: string }).data, "secret service");
  const { error } = await tool.run(toolCall({ url }, credential()));
  assert.match(error?.message ?? "", /certificate is not trusted/);
  const inline = { type: "basic", username: "u", password: "p", ca: TEST_TLS_CERTIFICATE };
  assert.equal((await tool.run(toolCall({ url, auth: inline }))).error, undefined);
  const path = await tool.run(toolCall({ url }, credential("/etc/ssl/ca.pem")));
  assert.match(path.error?.message ?? "", /"ca" must be certificates/);
});

test("NODE_EXTRA_CA_CERTS is trusted by every call", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "flow-ca-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "ca.pem");
  await writeFile(file, TEST_TLS_CERTIFICATE);
  const src = new URL("../../../src/", import.meta.url);
  const script = `
    const { createHttpTool } = await import("${new URL("tools/http/http.js", src)}");
    const { createEgressGuard } = await import("${new URL("platform/http/egress.js", src)}");
    const tool = createHttpTool({ egress: createEgressGuard({ allowPrivate: "all" }) });
    const call = { config: { url: "https://localhost:${securePort}/" }, auth: {}, taskRunId: "1", signal: new AbortController().signal };
    const { data: result, error } = await tool.run(call);
    console.log(JSON.stringify(result?.data ?? error.message));
    await tool.close();`;
  const answerOf = async (env: Record<string, string>) => {
    const args = ["--input-type=module", "-e", script];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env } });
    return stdout;
  };
  assert.match(await answerOf({ NODE_EXTRA_CA_CERTS: file }), /secret service/);
  assert.match(await answerOf({}), /certificate is not trusted/);
});
