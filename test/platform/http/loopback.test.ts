import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopback } from "../../../src/platform/http/loopback.ts";

for (const host of [
  "localhost",
  "LocalHost",
  "a.localhost",
  "127.0.0.1",
  "127.9.9.9",
  "::1",
  "[::1]",
  "::ffff:127.0.0.1",
]) {
  test(`${host} is this machine`, () => assert.ok(isLoopback(host)));
}

for (const host of [
  "",
  "0.0.0.0",
  "::",
  "10.0.0.1",
  "localhost.evil.example",
  "127.0.0.1.evil.example",
  "evil",
  "[::]",
]) {
  test(`'${host}' is not this machine alone`, () => assert.ok(!isLoopback(host)));
}
