import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { publicAddress, publicPathOf, withoutPublicPath } from "../../../src/platform/config/public-address.ts";

test("the public path is cut off where it stands whole, once, and nothing else is", () => {
  const cases: [address: string, cut: string][] = [
    ["/flow", "/"],
    ["/flow/", "/"],
    ["/flow?a=1", "/?a=1"],
    ["/flow/api/health?x=/flow/", "/api/health?x=/flow/"],
    ["/flow/flow/executions", "/flow/executions"],
    ["/flow//flow/health", "//flow/health"],
    ["/flowers", "/flowers"],
    ["/api/flow", "/api/flow"],
    ["/Flow/api", "/Flow/api"],
    ["/", "/"],
    ["*", "*"],
  ];
  for (const [address, cut] of cases) assert.equal(withoutPublicPath(address, "/flow"), cut);
  assert.equal(withoutPublicPath("/flow/x", ""), "/flow/x");
});

test("an address has a path or none, and what the proxy takes away is not cut off again", () => {
  const own = publicAddress(loadConfig({ FLOW_PUBLIC_URL: "https://host:8443/a/flow/" }).publicUrl);
  assert.deepEqual(own, {
    url: "https://host:8443/a/flow",
    origin: "https://host:8443",
    host: "host:8443",
    path: "/a/flow",
  });
  assert.deepEqual(publicPathOf({ publicPathStripped: false }, own), { publicPath: "/a/flow" });
  assert.deepEqual(publicPathOf({ publicPathStripped: true }, own), {});
  assert.deepEqual(publicPathOf({ publicPathStripped: false }, publicAddress("https://host")), {});
  assert.deepEqual(publicPathOf({ publicPathStripped: false }, publicAddress(undefined)), {});
});

for (const [name, value] of [
  ["FLOW_PUBLIC_URL", "host/flow"],
  ["FLOW_PUBLIC_URL", "https://user:password@host/flow"],
  ["FLOW_PUBLIC_URL", "https://host/flow?x=1"],
  ["FLOW_PUBLIC_PATH_STRIPPED", "yes"],
] as const) {
  test(`${name}=${value} is refused`, () => {
    assert.throws(() => loadConfig({ [name]: value }), new RegExp(`${name} must be`));
  });
}
