import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { clientAddress, isWithin, networkOf } from "../../../src/platform/http/client-address.ts";

const { trustedProxies } = loadConfig({ FLOW_GATEWAY_TRUSTED_PROXIES: "10.0.0.0/8, ::1" });

for (const [what, remote, forwarded, found] of [
  ["without a proxy it is the other end of the connection", "192.0.2.7", undefined, "192.0.2.7"],
  ["what a caller that is no proxy claims is not believed", "192.0.2.7", "198.51.100.1", "192.0.2.7"],
  ["a trusted proxy tells", "10.1.2.3", "198.51.100.1", "198.51.100.1"],
  ["IPv4 within IPv6 is IPv4", "::ffff:10.1.2.3", "::ffff:198.51.100.1", "198.51.100.1"],
  ["of several the last one that is no proxy counts", "::1", "203.0.113.9, 198.51.100.1, 10.9.9.9", "198.51.100.1"],
  ["a proxy that tells nothing, or nonsense, stands for its callers", "10.1.2.3", "unknown", "10.1.2.3"],
  ["a proxy without the header stands for its callers", "10.1.2.3", undefined, "10.1.2.3"],
  ["what came over no connection has none", undefined, "198.51.100.1", undefined],
] as const) {
  test(`the address of a caller: ${what}`, () => {
    assert.equal(clientAddress(remote, forwarded, trustedProxies), found);
  });
}

test("without trusted proxies X-Forwarded-For is ignored", () => {
  assert.equal(clientAddress("10.1.2.3", "198.51.100.1", []), "10.1.2.3");
});

test("callers are counted by their address, of IPv6 by its network", () => {
  assert.equal(networkOf("192.0.2.7"), "192.0.2.7");
  assert.equal(networkOf("2001:db8:1:2::1"), networkOf("2001:db8:1:2:ffff::9"));
  assert.notEqual(networkOf("2001:db8:1:2::1"), networkOf("2001:db8:1:3::1"));
  assert.equal(networkOf("nowhere"), "nowhere");
});

test("what is no address is in no range", () => {
  assert.equal(isWithin("nowhere", trustedProxies), false);
  assert.equal(isWithin("10.0.0.1", trustedProxies), true);
});
