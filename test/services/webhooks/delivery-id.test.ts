import assert from "node:assert/strict";
import { test } from "node:test";
import { deliveryId, readableHeaders } from "../../../src/services/webhooks/delivery-id.ts";

test("each preset's delivery has the id that its sender repeats", () => {
  assert.equal(deliveryId("github", { "x-github-delivery": "72d3162e" }, {}), "72d3162e");
  assert.equal(deliveryId("gitlab", { "idempotency-key": "a", "x-gitlab-event-uuid": "b" }, {}), "a");
  assert.equal(deliveryId("gitlab", { "x-gitlab-event-uuid": "b" }, {}), "b");
  assert.equal(deliveryId("stripe", {}, { id: "evt_1" }), "evt_1");
  assert.equal(deliveryId("slack", {}, { event_id: "Ev1", trigger_id: "t" }), "Ev1");
  assert.equal(deliveryId("slack", {}, { trigger_id: "t" }), "t");
  assert.equal(deliveryId("standard_webhooks", { "webhook-id": "msg_1" }, {}), "msg_1");
  for (const preset of ["hmac", "bearer", "basic", "none"] as const) {
    assert.equal(deliveryId(preset, { "idempotency-key": "k" }, {}), "k");
  }
});

test("a delivery without one has none, whatever its body is", () => {
  for (const body of [null, "text", [], { id: 7 }, { id: "" }, { toString: "x" }]) {
    assert.equal(deliveryId("stripe", {}, body), undefined, JSON.stringify(body));
    assert.equal(deliveryId("slack", {}, body), undefined);
  }
  for (const preset of ["github", "gitlab", "standard_webhooks", "hmac", "bearer", "basic", "none"] as const) {
    assert.equal(deliveryId(preset, {}, { id: "evt_1" }), undefined, preset);
  }
});

test("templates read no header that proves something", () => {
  const headers = {
    "X-GitHub-Event": "push",
    "x-hub-signature-256": "sha256=…",
    "x-hub-signature": "sha1=…",
    "stripe-signature": "t=1",
    "x-gitlab-token": "s3cret",
    authorization: "Bearer s3cret",
    "proxy-authorization": "Basic s3cret",
    cookie: "session=1",
    "x-api-key": "k",
    "x-sign": "of the trigger's own scheme",
    "content-type": "application/json",
  };
  assert.deepEqual(readableHeaders(headers, ["x-sign"]), {
    "x-github-event": "push",
    "content-type": "application/json",
  });
});
