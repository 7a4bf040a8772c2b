import assert from "node:assert/strict";
import { test } from "node:test";
import { loadCatalogDocument } from "../../../src/language/load/catalog-document.ts";
import { formatDiagnostic } from "../../../src/schema/words/diagnostic.ts";

const HEAD = "apiVersion: flow/v1\nkind: Subscription\nmetadata: { name: orders, path: subscriptions/orders }\nspec:\n";

function load(spec: string) {
  return loadCatalogDocument(`${HEAD}${spec.replace(/^/gm, "  ")}\n`, "test.yaml");
}

function valid(spec: string) {
  const { document, diagnostics } = load(spec);
  assert.deepEqual(diagnostics.map(formatDiagnostic), []);
  return document;
}

const NATS = `source: nats
mode: pull
activation: continuous
auth: bus
stream: ORDERS
consumer: orders-drain
runtime: { batch: 25, timeout_ms: 3000 }
dispatch: { playbook: shop/process_order }`;

test("a subscription with the source nats is a trigger of the playbook that it dispatches to", () => {
  const document = valid(NATS);
  assert.equal(document?.kind, "trigger");
  assert.equal(document?.path, "subscriptions/orders");
  const consumer = { credential: "bus", stream: "ORDERS", durable: "orders-drain", maxInFlight: 25 };
  assert.deepEqual(document?.triggers, [
    {
      path: "shop/process_order",
      trigger: {
        name: "orders",
        kind: "nats",
        nats: { ...consumer, deliver: "all", ackWaitMs: 30_000 },
        catchup: { mode: "none" },
        overlap: "allow",
        input: {},
        inputFrom: "{{ body }}",
      },
    },
  ]);
});

test("payload_from says what the inputs are, and a directive which header is the key", () => {
  const trigger = (dispatch: string, rest = "") =>
    valid(`${NATS.replace("process_order", `process_order, ${dispatch}`)}${rest}`)?.triggers[0]?.trigger;
  assert.equal(trigger("payload_from: message.json.order.lines")?.inputFrom, "{{ body.order.lines }}");
  assert.equal(trigger("payload_from: message.headers")?.inputFrom, "{{ headers }}");
  assert.equal(trigger("payload_from: message.data")?.inputFrom, "{{ body }}");
  assert.equal(trigger("payload_from: message")?.inputFrom, "{{ {'body': body, 'headers': headers} }}");
  assert.deepEqual(trigger('input: { at: "{{ message.time }}" }')?.input, { at: "{{ message.time }}" });
  const directive = "\nheaders: { directives: [{ header: X-Message-Key, controls: dispatch.idempotency_key }] }";
  assert.equal(trigger("payload_from: message.json", directive)?.nats?.keyHeader, "x-message-key");
});

const HOOK = `source: webhook
mode: push
ingress:
  gateway_path: /ingress/stripe
  verify: { type: hmac_sha256, header: X-Signature, secret: hook_secret }
dispatch: { playbook: shop/payment }`;

test("a subscription with the source webhook is a webhook", () => {
  const scheme = { algorithm: "sha256", encoding: "hex", prefix: "", payload: "{body}", toleranceMs: 300_000 };
  assert.deepEqual(valid(HOOK)?.triggers[0]?.trigger.webhook, {
    path: "ingress/stripe",
    verify: { preset: "hmac", secrets: ["hook_secret"], hmac: { ...scheme, header: "x-signature" } },
  });
  const bearer = HOOK.replace(/verify:.*/, "verify: { type: bearer, secret: token }");
  assert.deepEqual(valid(bearer)?.triggers[0]?.trigger.webhook?.verify, { preset: "bearer", secrets: ["token"] });
  const stripe = HOOK.replace(/verify:.*/, "verify: { preset: stripe, secret: whsec }");
  assert.deepEqual(valid(stripe)?.triggers[0]?.trigger.webhook?.verify, { preset: "stripe", secrets: ["whsec"] });
});

test("what nothing here serves is said when it is registered", () => {
  const cases: readonly (readonly [spec: string, found: RegExp])[] = [
    [NATS.replace("source: nats", "source: kafka"), /nothing here reads from `kafka`/],
    [NATS.replace("source: nats", "source: pubsub"), /nothing here reads from `pubsub`/],
    [NATS.replace("source: nats", "source: rabbitmq"), /`source` must be nats or webhook, not `rabbitmq`/],
    [NATS.replace("mode: pull", "mode: push"), /`mode` of the source nats is pull, not `push`/],
    [NATS.replace("continuous", "scheduled"), /nothing here serves `activation: scheduled`/],
    [NATS.replace("stream: ORDERS\n", ""), /`spec` has no `stream`/],
    [NATS.replace("auth: bus\n", ""), /`spec` has no `auth`/],
    [NATS.replace("{ playbook: shop/process_order }", "{}"), /`dispatch` has no `playbook`/],
    [NATS.replace("process_order", "process_order, payload_from: body"), /`payload_from` cannot be `body`/],
    [NATS.replace("playbook: shop/process_order", "playbook: shop//x"), /`playbook` cannot be a catalog path/],
    [
      `${NATS}\nheaders: { directives: [{ header: X, controls: dispatch.playbook }] }`,
      /no header may say `dispatch\.playbook` here/,
    ],
    [HOOK.replace(/ingress:[\s\S]*?dispatch/, "dispatch"), /`spec` has no `ingress`/],
    [HOOK.replace("hmac_sha256", "pubsub_oidc"), /nothing here verifies by `pubsub_oidc`/],
    [HOOK.replace(", secret: hook_secret", ""), /the preset hmac needs a secret/],
    [HOOK.replace("header: X-Signature, ", ""), /`verify` has no `header`/],
    [HOOK.replace("/ingress/stripe", "/"), /cannot be an address/],
  ];
  for (const [spec, found] of cases) {
    const { document, diagnostics } = load(spec);
    assert.equal(document, undefined, spec);
    assert.match(diagnostics.map(formatDiagnostic).join("\n"), found);
  }
});
