import assert from "node:assert/strict";
import { createServer as createPlainServer, type RequestListener, request } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { after, test } from "node:test";
import { startBrowser } from "../../support/page/browser.ts";
import { DOMAIN } from "../../support/servers/identity-provider.ts";
import { TEST_TLS_CERTIFICATE, TEST_TLS_KEY } from "../../support/servers/tls.ts";
import { startLoginService } from "../../support/service/login-service.ts";

/*
 * What a page of plain http on the same host can do to a session behind https: with a real browser, a real gateway, and a proxy
 * that ends TLS before it. Cookies know no ports and no schemes, so the page reaches the gateway's.
 */

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const closing = { after: (close: () => unknown) => void closers.push(close) };

test("no page of plain http plants a session of its own beside, or in place of, the one behind https", async () => {
  let gateway = "";
  const forward: RequestListener = (incoming, outgoing) => {
    const { method, headers, url } = incoming;
    const passed = request(`${gateway}${url}`, { method: method ?? "GET", headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
  };
  const secure = createServer({ key: TEST_TLS_KEY, cert: TEST_TLS_CERTIFICATE }, forward);
  // Browsers trust plain http of this machine: the gateway has a name that only this proxy knows, with both schemes.
  const plain = createPlainServer(
    (_, answer) => void answer.setHeader("content-type", "text/html").end("<html></html>"),
  );
  for (const server of [secure, plain]) {
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    closers.push(() => {
      server.close();
      server.closeAllConnections();
    });
  }
  const [own = 0, proxy = 0] = [secure, plain].map((server) => (server.address() as AddressInfo).port);
  plain.on("connect", (_, socket, head) => {
    const tunnel = connect(own, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      tunnel.write(head);
      tunnel.pipe(socket).pipe(tunnel);
    });
    for (const end of [tunnel, socket]) end.on("error", () => void [tunnel, socket].map((one) => one.destroy()));
  });
  const url = "https://flow.example";
  const service = await startLoginService(closing, { GATEWAY_PUBLIC_URL: url, FLOW_GATEWAY_LOGIN_SECONDS: "300" });
  gateway = service.server.gatewayUrl;
  const browser = await startBrowser();
  closers.push(() => browser.close());
  const context = await browser.newContext({ ignoreHTTPSErrors: true, proxy: { server: `http://127.0.0.1:${proxy}` } });
  context.setDefaultTimeout(300_000);
  const planted = (await service.login({ sub: "mallory", email: "mallory@example.com" })).body.session_token;
  const page = await context.newPage();
  await page.goto(`${url}/login`);
  const whoami = () =>
    page.evaluate<string>(`fetch("/api/auth/session").then(async (answer) =>
      answer.ok ? (await answer.json()).user.email : String(answer.status))`);
  const attacker = await context.newPage();
  await attacker.goto("http://flow.example/");
  const plant = async () => {
    for (const name of ["session_token", "__Host-session_token", "__Secure-session_token"])
      for (const more of ["", "; secure"])
        for (const path of ["/", "/api"])
          await attacker.evaluate(`document.cookie = "${name}=${planted}; path=${path}${more}"`);
  };
  await plant();
  assert.equal(await whoami(), "401", "a visitor does not act as the attacker");

  const token = await service.provider.idToken({ sub: "ada", email: "ada@example.com", name: "Ada" });
  const body = JSON.stringify({ idp_token: token, idp_domain: DOMAIN });
  const status = await page.evaluate<number>(`fetch("/api/auth/login", { method: "POST",
    headers: { "content-type": "application/json" }, body: ${JSON.stringify(body)} }).then((answer) => answer.status)`);
  assert.equal(status, 200);
  assert.equal(await whoami(), "ada@example.com");
  const cookies = await context.cookies(url);
  const [session] = cookies.filter(({ name }) => name === "__Host-session_token");
  assert.deepEqual(
    [session?.path, session?.httpOnly, session?.secure, session?.sameSite, session?.domain],
    ["/", true, true, "Lax", "flow.example"],
  );
  await plant();
  assert.equal(await whoami(), "ada@example.com", "it is neither replaced nor made unusable");
});
