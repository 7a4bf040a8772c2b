import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import { publicAddress } from "../../../src/platform/config/public-address.ts";
import { errorAnswers } from "../../../src/routes/http/errors.ts";
import { loopbackOnly } from "../../../src/routes/http/loopback-only.ts";

/* A server on loopback behind a reverse proxy of the same machine. */

const own = publicAddress("https://flow.example.com/flow");

function appFor(address: typeof own) {
  const app = new Hono();
  app.onError(errorAnswers({ logger: { error() {}, warn() {} }, unavailable: () => undefined } as never) as never);
  app.use(loopbackOnly(address));
  return app.get("/", (c) => c.text("in"));
}

const status = async (address: typeof own, headers: Record<string, string>) =>
  (await appFor(address).request("http://127.0.0.1/", { headers })).status;

test("a server on loopback answers to its public name, and to pages from there, where it has one", async () => {
  assert.equal(await status(own, { host: "flow.example.com" }), 200);
  assert.equal(await status(own, { host: "flow.example.com", origin: "https://flow.example.com" }), 200);
  assert.equal(await status(own, { host: "127.0.0.1" }), 200);
  assert.equal(await status(undefined, { host: "flow.example.com" }), 403);
});

test("other names, other ports and pages from elsewhere are refused all the same", async () => {
  for (const host of ["evil.example", "flow.example.com:8443", "flow.example.com.evil.example"])
    assert.equal(await status(own, { host }), 403);
  for (const origin of ["http://flow.example.com", "https://evil.example", "null"])
    assert.equal(await status(own, { host: "flow.example.com", origin }), 403);
});
