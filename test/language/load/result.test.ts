import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import type { ResultConfig } from "../../../src/schema/words/playbook.ts";

// `spec.result` (interface specification, Task result configuration): all spellings, and what is refused.

function load(result: string) {
  const text = `apiVersion: test/v2
kind: Playbook
metadata: { name: x }
workflow:
  - step: a
    tool: { kind: noop, spec: { result: ${result} } }
`;
  const { playbook, diagnostics } = loadPlaybook(text, "x.yaml");
  return { config: playbook?.steps[0]?.tasks[0]?.result, diagnostics };
}

for (const [result, expected] of [
  ["{ store: kv }", { store: { kind: "kv" } }],
  [
    "{ store: { kind: auto, scope: workflow, ttl: 90s, compression: gzip } }",
    { store: { kind: "auto", scope: "workflow", ttl: "90s", compression: "gzip" } },
  ],
  ["{ store: { ttl: 3600 } }", { store: { ttl: "3600s" } }],
  ['{ store: { ttl: "1.5" } }', { store: { ttl: "1.5s" } }],
  ["{ inline_max_bytes: 0, preview_max_bytes: 0 }", { inlineMaxBytes: 0, previewMaxBytes: 0 }],
  [
    "{ accumulate: { strategy: concat, merge_path: $.data.items } }",
    { accumulate: { strategy: "concat", merge_path: "$.data.items" } },
  ],
  [
    "{ accumulate: { strategy: merge, merge_path: data } }",
    { accumulate: { strategy: "merge", merge_path: "$.data" } },
  ],
  ["{ accumulate: append }", { accumulate: { strategy: "append" } }],
] as [string, Partial<ResultConfig>][]) {
  test(`${result} is read silently`, () => {
    const { config, diagnostics } = load(result);
    assert.deepEqual(config, { select: [], sensitive: false, ...expected });
    assert.deepEqual(diagnostics, []);
  });
}

for (const [written, kind] of [
  ["object", "disk"],
  ["nats_object", "disk"],
  ["gcs", "cloud_bucket"],
  ["postgres", "sqldb"],
] as const) {
  test(`the store ${written} is ${kind} today`, () => {
    const { config, diagnostics } = load(`{ store: { kind: ${written} } }`);
    assert.deepEqual(config?.store, { kind });
    assert.deepEqual(
      diagnostics.map(({ code, hint }) => [code, hint]),
      [["legacy-form", `today: \`${kind}\``]],
    );
  });
}

for (const [result, code, message, hint] of [
  [
    "{ store: { kind: s4 } }",
    "wrong-value",
    "`kind` must be one of auto, kv, s3, cloud_bucket, sqldb, disk, not `s4`",
    "did you mean `s3`?",
  ],
  [
    "{ store: kvv }",
    "wrong-value",
    "`store` must be one of auto, kv, s3, cloud_bucket, sqldb, disk, not `kvv`",
    "did you mean `kv`?",
  ],
  [
    "{ store: { scope: executions } }",
    "wrong-value",
    "`scope` must be one of step, execution, workflow, permanent, not `executions`",
    "did you mean `execution`?",
  ],
  [
    "{ store: { ttl: 1 hour } }",
    "wrong-value",
    "`ttl` must be a duration such as 90s, 15m, 1h or 30d, not `1 hour`",
    undefined,
  ],
  ["{ store: { ttl: 0 } }", "wrong-value", "`ttl` must be a duration such as 90s, 15m, 1h or 30d, not `0`", undefined],
  [
    '{ store: { ttl: "{{ workload.ttl }}" } }',
    "wrong-value",
    "`ttl` must be a duration such as 90s, 15m, 1h or 30d, not `{{ workload.ttl }}`",
    undefined,
  ],
  [
    "{ store: { compression: zip } }",
    "wrong-value",
    "`compression` must be one of gzip, none, not `zip`",
    "did you mean `gzip`?",
  ],
  ["{ store: [kv] }", "wrong-type", undefined, undefined],
  [
    "{ inline_max_bytes: -1 }",
    "wrong-value",
    "`inline_max_bytes` must be a whole number of bytes from 0, not -1",
    undefined,
  ],
  [
    "{ preview_max_bytes: 1.5 }",
    "wrong-value",
    "`preview_max_bytes` must be a whole number of bytes from 0, not 1.5",
    undefined,
  ],
  [
    "{ accumulate: { strategy: sum } }",
    "wrong-value",
    "`strategy` must be one of append, concat, merge, replace, not `sum`",
    undefined,
  ],
  [
    "{ accumulate: { merge_path: $.a } }",
    "missing-key",
    "`accumulate` needs a `strategy`: how the results become one",
    "`strategy` is one of append, concat, merge, replace",
  ],
  [
    '{ accumulate: { strategy: concat, merge_path: "$.a[?@.b]" } }',
    "wrong-value",
    "`$.a[?@.b]` is no path: expected `.name`, `[0]`, `['name']` or `[*]`, at its character 4",
    "a path is JSONPath, as `$.data.items[0].id` or `$['odd name']`",
  ],
] as const) {
  test(`${result} is refused`, () => {
    const { config, diagnostics } = load(result);
    assert.equal(config, undefined);
    const [first] = diagnostics;
    assert.equal(first?.code, code);
    if (message !== undefined) assert.deepEqual([first.message, first.hint], [message, hint]);
    assert.equal(first.line, 6);
  });
}

test("a path's problem stands at its place in the document", () => {
  const { diagnostics } = load('{ accumulate: { strategy: concat, merge_path: "$.a..b" } }');
  const line = '    tool: { kind: noop, spec: { result: { accumulate: { strategy: concat, merge_path: "$.a..b" } } } }';
  assert.equal(diagnostics[0]?.column, line.indexOf("$.a..b") + 3 + 1);
});

test("an unknown key of a store or of accumulate is a warning", () => {
  const { config, diagnostics } = load(
    "{ store: { kind: kv, scop: step }, accumulate: { strategy: append, path: $.a } }",
  );
  assert.ok(config !== undefined);
  assert.deepEqual(
    diagnostics.map(({ code, hint }) => [code, hint]),
    [
      ["unknown-key", "did you mean `scope`?"],
      ["unknown-key", undefined],
    ],
  );
});
