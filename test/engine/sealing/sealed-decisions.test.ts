import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sealedDecisions } from "../../../src/engine/sealing/decision-sealing.ts";
import { createSecrets, openSealed } from "../../../src/engine/sealing/secrets.ts";
import { createSealer } from "../../../src/platform/crypto/sealing.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { SEALED, type Sealer } from "../../../src/schema/words/sealed.ts";
import { given } from "../support/given.ts";
import { leavesOf, VALUE } from "../support/json-values.ts";
import { done } from "../support/reports.ts";

// What the engine evaluates reads what the tool gave, whatever of it is sealed on its way; what it decides is sealed again.

const sealer = createSealer([{ id: "k1", key: Buffer.alloc(32, 7) }]);

function decisions(keys: Sealer = sealer) {
  const nowhere = { load: () => Promise.reject(new Error("There is no payload")) };
  return sealedDecisions(nowhere, () => keys).sealing;
}

/** What a worker would report of a value in which these secrets stand. */
function reported(value: Json, ...secrets: Json[]): Json {
  const noted = createSecrets();
  for (const secret of secrets) noted.note(secret);
  return noted.seal(value, sealer);
}

const opened = (value: Json) => openSealed(value, sealer, createSecrets());

const PLAYBOOK = `
workflow:
  - step: tell
    tool: { kind: noop }
    set: { all: "{{ tell.v }}", list: ["{{ output.data.v }}"] }
    next:
      arcs:
        - { step: same, when: "{{ tell.v == workload.v and vars.all == workload.v and list[0] == workload.v }}", args: { arg: "{{ result.v }}" } }
        - { step: other }
  - step: same
    when: "{{ arg == workload.v and ctx.all == workload.v and input.arg == args.arg and steps.tell.v == workload.v }}"
    loop: { in: ["{{ tell.v }}", "{{ arg }}"], iterator: one }
    tool: { kind: noop, result: "{{ one }}" }
  - step: other
    tool: { kind: noop }
`;

test("for any secrets and any JSON, later when, set, args and loop see the tool's exact result, and the log has no secret", () => {
  let sealedCount = 0;
  fc.assert(
    fc.property(VALUE, fc.array(fc.nat(9), { minLength: 1, maxLength: 2 }), (made, picks) => {
      const value = JSON.parse(JSON.stringify(made)) as Json;
      const leaves = leavesOf(value);
      const secrets = picks.map((pick) => leaves[pick % Math.max(1, leaves.length)] ?? null);
      const report = reported({ v: value }, ...secrets);
      const run = given(PLAYBOOK, { input: { v: value } }, { sealing: decisions() });
      run.when(done("tell", report)).is({ open: ["same"] });
      assert.deepEqual(opened(run.state.vars), { all: value, list: [value], arg: value });
      const [, command] = run.commands;
      assert.deepEqual(opened(command?.loop?.items as Json), [value]);
      assert.deepEqual(opened(command?.context.input as Json), { arg: value });
      const decided = run.log.filter(({ type }) => type === "step.completed" || type === "loop.started");
      for (const secret of secrets) {
        if (typeof secret !== "string" || secret.length < 8) continue;
        for (const leaf of leavesOf(decided as unknown as Json).map(String)) {
          assert.ok(!leaf.replace(SEALED, "\0").includes(secret), `${secret} in ${leaf}`);
        }
      }
      if (JSON.stringify(report).includes("[sealed:k1:")) sealedCount += 1;
    }),
    { numRuns: 1_000, includeErrorInReport: true },
  );
  assert.ok(sealedCount > 50, `in ${sealedCount} values something was sealed`);
});

test("the defaults of a workload read sealed inputs, and values derived from them are sealed", () => {
  const input = reported({ token: "swordfish-1", plain: 3 }, "swordfish-1") as { [key: string]: Json };
  const run = given(
    'workload: { token: null, url: "https://h/?t={{ workload.token }}", size: "{{ token | length }}" }\nworkflow:\n  - step: a\n    tool: { kind: noop }\n',
    { input },
    { sealing: decisions() },
  );
  assert.doesNotMatch(JSON.stringify(run.log), /swordfish/);
  assert.deepEqual(opened(run.state.workload), {
    token: "swordfish-1",
    url: "https://h/?t=swordfish-1",
    size: 11,
    plain: 3,
  });
});

const LOST = createSealer([{ id: "k2", key: Buffer.alloc(32, 8) }]);
const BRANCHES = `
workflow:
  - step: tell
    tool: { kind: noop }
    next:
      arcs:
        - { step: yes, when: "{{ CONDITION }}" }
        - { step: no }
  - { step: yes, tool: { kind: noop } }
  - { step: no, tool: { kind: noop } }
`;

test("without the key of a sealed value a decision that uses it fails with the reason; values beside it can be read", () => {
  const report = reported({ token: "swordfish-1", text: "a swordfish-1", ok: true }, "swordfish-1");
  const start = (condition: string) =>
    given(BRANCHES.replace("CONDITION", condition), {}, { sealing: decisions(LOST) }).when(done("tell", report));
  for (const condition of ["tell.token == 'swordfish-1'", "'x' in tell.text", "tell.token | length > 3"]) {
    start(condition).is({ status: "FAILED", error: /sealed with key 'k1', which this server does not have/ });
  }
  start("tell.ok").is({ open: ["yes"] });
  start("not tell.ok").is({ open: ["no"] });
});

test("a text of an author that only looks sealed is compared as written", () => {
  for (const text of ["[sealed:k1:abc]", "see [sealed:] and [sealed:k9:AAAA]", "[sealed:"]) {
    const run = given(
      BRANCHES.replace("CONDITION", "tell.text == workload.want"),
      { input: { want: text } },
      {
        sealing: decisions(),
      },
    );
    run.when(done("tell", { text })).is({ open: ["yes"] });
  }
});

test("a value without secrets is scanned once, however often it is read", () => {
  const { open } = decisions() ?? assert.fail();
  const rows = Array.from({ length: 10_000 }, (_, id) => ({ id, name: `row ${id}` }));
  let reads = 0;
  const ownKeys = (target: object) => {
    reads += 1;
    return Reflect.ownKeys(target);
  };
  const watched = rows.map((row) => new Proxy(row, { ownKeys }));
  assert.equal(open(watched), watched);
  const once = reads;
  assert.ok(once > 0);
  for (let read = 0; read < 100; read += 1) assert.equal(open(watched), watched);
  assert.equal(reads, once);
});
