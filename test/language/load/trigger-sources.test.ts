import assert from "node:assert/strict";
import { test } from "node:test";
import { loadCatalogDocument } from "../../../src/language/load/catalog-document.ts";
import { formatDiagnostic } from "../../../src/schema/words/diagnostic.ts";
import { HEAD, summary } from "../load-support.ts";

const WORKFLOW = "workflow: [{ step: start, tool: { kind: noop } }]\n";

/** A playbook with one trigger, whose section stands from line 6. */
function withSection(section: string) {
  const text = `${HEAD}triggers:\n  - name: t\n${section.replace(/^/gm, "    ")}\n${WORKFLOW}`;
  return loadCatalogDocument(text, "test.yaml");
}

function definition(section: string) {
  const { document, diagnostics } = withSection(section);
  assert.deepEqual(diagnostics.map(formatDiagnostic), []);
  return document?.triggers[0]?.trigger;
}

/** The first problem, as `line:column message`, and its hint. */
function problem(section: string): string[] {
  const { document, diagnostics } = withSection(section);
  assert.equal(document, undefined);
  const [first] = diagnostics;
  assert.equal(first?.code === "wrong-trigger" || first?.code === "wrong-value", true, JSON.stringify(diagnostics));
  return [`${first?.line}:${first?.column} ${first?.message}`, first?.hint ?? ""];
}

const hook = (rest: string) => `webhook: { path: github/push, ${rest} }`;

test("a webhook in one form, with its defaults", () => {
  const section = `webhook:
  path: github/push
  verify: { preset: github, secret: github_hook }
  deduplicate: "{{ headers['x-github-delivery'] }}"
  when: "{{ body.ref == 'refs/heads/main' }}"
  respond: { result: { timeout: 30s } }
input: { commit: "{{ body.after }}" }`;
  const trigger = definition(section);
  assert.equal(trigger?.kind, "webhook");
  assert.deepEqual(trigger?.webhook, {
    path: "github/push",
    verify: { preset: "github", secrets: ["github_hook"] },
    deduplicate: "{{ headers['x-github-delivery'] }}",
    when: "{{ body.ref == 'refs/heads/main' }}",
    respondMs: 30_000,
  });
  for (const respond of ["", ", respond: accepted"]) {
    const plain = definition(hook(`verify: none${respond}`))?.webhook;
    assert.deepEqual(plain, { path: "github/push", verify: { preset: "none", secrets: [] } });
  }
  assert.equal(definition(hook("verify: { preset: none }, respond: result"))?.webhook?.respondMs, 20_000);
});

test("an HMAC of one's own, with its defaults and with all it can say", () => {
  const least = definition(hook("verify: { hmac: { header: X-Signature }, secret: [new, old] }"))?.webhook?.verify;
  const defaults = { algorithm: "sha256", encoding: "hex", prefix: "", payload: "{body}", toleranceMs: 300_000 };
  assert.deepEqual(least, { preset: "hmac", secrets: ["new", "old"], hmac: { header: "x-signature", ...defaults } });
  const all = `{ header: X-Sign, algorithm: sha512, encoding: base64, prefix: "v1=",
    payload: "{header:X-Id}.{timestamp}.{body}", timestamp_header: X-Time, tolerance: 1m }`;
  assert.deepEqual(definition(hook(`verify: { preset: hmac, secret: s, hmac: ${all} }`))?.webhook?.verify.hmac, {
    header: "x-sign",
    algorithm: "sha512",
    encoding: "base64",
    prefix: "v1=",
    payload: "{header:X-Id}.{timestamp}.{body}",
    timestampHeader: "x-time",
    toleranceMs: 60_000,
  });
});

test("what is wrong with a webhook is said where it stands", () => {
  const cases: readonly (readonly [section: string, found: RegExp])[] = [
    ["webhook: { path: /github, verify: none }", /^6:22 `\/github` cannot be an address .*slash$/],
    ["webhook: { path: a//b, verify: none }", /a part between its slashes is empty/],
    ["webhook: { path: a/../b, verify: none }", /`\.` or `\.\.`$/],
    ["webhook: { path: ä, verify: none }", /other characters than letters/],
    [`webhook: { path: ${"a".repeat(201)}, verify: none }`, /201 characters, 200 at most/],
    [hook("verify: {}"), /`verify` does not say how the sender is known/],
    [hook("verify: { preset: githup, secret: s }"), /`preset` must be github or .*, not `githup`/],
    [hook("verify: { preset: github }"), /the preset github needs a secret/],
    [hook("verify: { preset: none, secret: s }"), /`none` accepts everything/],
    [hook("verify: { preset: github, secret: [] }"), /`secret` has 0 names/],
    [hook('verify: { preset: github, secret: "{{ body.secret }}" }'), /the name of a credential, and no template/],
    [hook("verify: { preset: hmac, secret: s }"), /does not say what is signed/],
    [hook("verify: { preset: github, secret: s, hmac: { header: X } }"), /the preset github has no `hmac`/],
    [hook('verify: { secret: s, hmac: { header: X, payload: "{timestamp}" } }'), /no `\{body\}`, so anybody/],
    [hook('verify: { secret: s, hmac: { header: X, payload: "{bdy}{body}" } }'), /`\{bdy\}`, which means nothing/],
    [hook('verify: { secret: s, hmac: { header: X, payload: "{timestamp}{body}" } }'), /nothing says where it stands/],
    [hook("verify: { secret: s, hmac: { header: X, timestamp_header: T } }"), /not part of what is signed/],
    [hook('verify: { secret: s, hmac: { header: "X Y" } }'), /`X Y` is not a header name/],
    [
      hook("verify: { secret: s, hmac: { header: X, tolerance: 2d } }"),
      /`tolerance` must be a duration from 1s to 86400s/,
    ],
    [hook("verify: none, respond: { result: { timeout: 61s } }"), /`timeout` must be a duration from 1s to 60s/],
    [hook("verify: none, respond: later"), /`respond` must be accepted or result, not `later`/],
  ];
  for (const [section, found] of cases) assert.match(problem(section)[0] ?? "", found, section);
});

test("templates of a webhook read what a delivery has, and nothing else", () => {
  const { diagnostics } = withSection(
    `webhook: { path: a, verify: none, when: "workload.x == 1", deduplicate: "{{ message.id }}" }
input: { a: "{{ query.a }}{{ method }}{{ trigger.name }}{{ headers.x }}", b: "{{ subject }}" }`,
  );
  assert.deepEqual(summary(diagnostics), ["6:46 unknown-variable", "6:81 unknown-variable", "7:86 unknown-variable"]);
});

test("a NATS trigger in one form, with its defaults and with all it can say", () => {
  const defaults = { deliver: "all", maxInFlight: 50, ackWaitMs: 30_000 };
  const least = definition("nats: { credential: bus, stream: ORDERS }")?.nats;
  assert.deepEqual(least, { credential: "bus", stream: "ORDERS", ...defaults });
  const all = `nats: { credential: bus, stream: ORDERS, subject: "orders.>", durable: flow_orders, deliver: new,
  max_in_flight: 1000, ack_wait: 1m, when: "body.ok" }
input: { id: "{{ body.id }}", at: "{{ message.time }}", from: "{{ subject }}" }`;
  assert.deepEqual(definition(all)?.nats, {
    credential: "bus",
    stream: "ORDERS",
    subject: "orders.>",
    durable: "flow_orders",
    deliver: "new",
    maxInFlight: 1_000,
    ackWaitMs: 60_000,
    when: "body.ok",
  });
});

test("what is wrong with a NATS trigger is said where it stands", () => {
  const nats = (rest: string) => `nats: { credential: bus, stream: ORDERS, ${rest} }`;
  const cases: readonly (readonly [section: string, found: RegExp])[] = [
    ["nats: { credential: bus, stream: a.b }", /`a\.b` cannot be the name of a stream/],
    [nats('durable: "a b"'), /`a b` cannot be the name of a consumer/],
    [nats('subject: "a..b"'), /`a\.\.b` cannot be a subject/],
    [nats('subject: "a.>.b"'), /cannot be a subject/],
    [nats("max_in_flight: 0"), /`max_in_flight` must be a whole number from 1 to 1000, not `0`/],
    [nats("max_in_flight: 1001"), /not `1001`/],
    [nats("ack_wait: 0"), /`ack_wait` must be a duration from 1s/],
    [nats("deliver: last"), /`deliver` must be all or new/],
    ['nats: { credential: "{{ env.BUS }}", stream: ORDERS }', /must be the name of a credential/],
  ];
  for (const [section, found] of cases) assert.match(problem(section)[0] ?? "", found, section);
});
