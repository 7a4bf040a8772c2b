import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNatsAddress } from "../../../src/platform/nats/address.ts";

for (const [url, servers, options] of [
  ["nats://broker", ["broker:4222"], {}],
  ["nats://broker:5222", ["broker:5222"], {}],
  ["nats://[::1]:5222", ["[::1]:5222"], {}],
  ["tls://broker", ["broker:4222"], { tls: {} }],
  ["nats://flow:secret@broker", ["broker:4222"], { user: "flow", pass: "secret" }],
  ["nats://token@broker", ["broker:4222"], { token: "token" }],
  ["nats://fl%40ow:100%25@broker", ["broker:4222"], { user: "fl@ow", pass: "100%" }],
  ["nats://flow:100%@broker", ["broker:4222"], { user: "flow", pass: "100%" }],
  ["nats://flow:secret@a, nats://b:1", ["a:4222", "b:1"], { user: "flow", pass: "secret" }],
] as const) {
  test(`BROKER_URL ${url} is read`, () => assert.deepEqual(parseNatsAddress(url), { servers, options }));
}
