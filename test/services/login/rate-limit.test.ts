import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { createLoginLimit } from "../../../src/services/login/rate-limit.ts";

function refusal(call: () => void): { code: string; detail: unknown } {
  try {
    call();
  } catch (error) {
    assert.ok(error instanceof FlowError);
    return { code: error.code, detail: error.detail };
  }
  return assert.fail("it was allowed");
}

test("an address has so many logins a minute, and the next one when its part of the minute is over", () => {
  let now = 0;
  const limit = createLoginLimit(4, () => now);
  for (let login = 0; login < 4; login += 1) limit("192.0.2.1", "idp.example");
  assert.deepEqual(
    refusal(() => limit("192.0.2.1", "idp.example")),
    {
      code: "RATE_LIMITED",
      detail: { retry_after_seconds: 15 },
    },
  );
  now += 15_000;
  limit("192.0.2.1", "idp.example");
  now += 14_000;
  assert.equal(refusal(() => limit("192.0.2.1", "idp.example")).code, "RATE_LIMITED");
});

test("who asks too often does not wait the longer for it", () => {
  let now = 0;
  const limit = createLoginLimit(1, () => now);
  limit("192.0.2.1", "idp.example");
  for (now = 1_000; now < 60_000; now += 1_000)
    assert.equal(refusal(() => limit("192.0.2.1", "idp.example")).code, "RATE_LIMITED");
  limit("192.0.2.1", "idp.example");
});

test("each address and each domain is counted alone; an IPv6 network is one address", () => {
  const limit = createLoginLimit(1, () => 0);
  limit("192.0.2.1", "idp.example");
  limit("192.0.2.2", "idp.example");
  limit("192.0.2.1", "other.example");
  limit("2001:db8::1", "idp.example");
  assert.equal(refusal(() => limit("2001:db8::2", "idp.example")).code, "RATE_LIMITED");
});

test("so many addresses that some are forgotten: the ones that came longest ago", () => {
  const limit = createLoginLimit(1, () => 0);
  limit("first", "d");
  for (let other = 0; other < 100_000; other += 1) limit(`other ${other}`, "d");
  limit("first", "d");
  assert.equal(refusal(() => limit("other 99999", "d")).code, "RATE_LIMITED");
});
