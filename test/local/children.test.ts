import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { CHILD_DEPTH_MAX } from "../../src/local/family.ts";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { setup } from "../worker/support/bench.ts";
import { bad, longText, ok } from "../worker/support/scripted-tools.ts";

// Language document, section 8, kind `playbook`, as the local runtime carries it out.

const CHILD = `
workload: { greeting: Hello, name: World }
workflow:
  - step: make
    tool: { kind: noop, result: { n: 1 } }
    next: [{ step: end }]
  - step: end
    tool: { kind: noop, result: { said: "{{ greeting }} {{ name }}", parent: "{{ parent_execution_id }}", own: "{{ execution_id }}" } }
`;

function calling(task: string, more = ""): string {
  return `
workflow:
  - step: call
    ${more}
    tool: { kind: playbook, ${task} }
`;
}

test("a child's result is merged over its status and id, and it knows its parent", async (t) => {
  const bench = setup(t, { files: { "child.yaml": CHILD } });
  const ran = await bench.completed(calling("path: child.yaml, input: { name: Ada }"));
  const [parent, child] = bench.executions();
  assert.deepEqual(await ran.result(), {
    status: "completed",
    execution_id: child?.state.executionId,
    said: "Hello Ada",
    parent: parent?.state.executionId,
    own: child?.state.executionId,
  });
  assert.equal(ran.of("call.done")[0]?.child_execution_id, child?.state.executionId);
  const caller = { execution_id: parent?.state.executionId, root_catalog_id: "test", step: "call" };
  assert.deepEqual(child?.state.parent, caller);
});

test("the call names the execution that it called, also where the child's result has a field of that name", async (t) => {
  const child = `
workflow:
  - step: end
    tool: { kind: noop, result: { execution_id: "4711" } }
`;
  const bench = setup(t, { files: { "child.yaml": child } });
  const ran = await bench.completed(calling("path: child.yaml"));
  const [, called] = bench.executions();
  assert.equal(ran.of("call.done")[0]?.child_execution_id, called?.state.executionId);
});

for (const key of ["input", "args", "payload"]) {
  test(`a child is given ${key}, and not what arrived over the parent's arc`, async (t) => {
    const bench = setup(t, { files: { "child.yaml": CHILD } });
    const work = bench.run(calling(`path: child.yaml, ${key}: { name: "{{ who }}" }`), {
      input: { who: "Ada", greeting: "Bye" },
    });
    await work;
    const [, child] = bench.executions();
    assert.deepEqual(child?.state.input, { name: "Ada" });
    assert.deepEqual(child?.state.workload, { greeting: "Hello", name: "Ada" });
  });
}

test("return_step gives that step's result instead of the child's own", async (t) => {
  const bench = setup(t, { files: { "child.yaml": CHILD } });
  const ran = await bench.completed(calling("path: child.yaml, return_step: make"));
  const { status, n, said } = (await ran.result()) as JsonObject;
  assert.deepEqual({ status, n, said }, { status: "completed", n: 1, said: undefined });
});

test("return_step of a step that the child does not have fails before the child is started", async (t) => {
  const bench = setup(t, { files: { "child.yaml": CHILD } });
  const { state } = await bench.failed(calling("path: child.yaml, return_step: mkae"));
  assert.equal(state.error?.kind, "configuration");
  assert.match(state.error?.message ?? "", /return_step: playbook 'test' has no step 'mkae'; it has: make, end/);
  assert.equal(bench.executions().length, 1);
});

test("a child whose result is no map, or large, is read all the same", async (t) => {
  const files = {
    "list.yaml": 'workflow: [{ step: a, tool: { kind: python, code: "[1, 2]" } }]',
    "large.yaml": "workflow: [{ step: a, tool: { kind: http } }]",
    "nothing.yaml": "workflow: [{ step: a, when: false }]",
  };
  const bench = setup(t, { files, tools: { python: [ok([1, 2])], http: [ok({ text: longText(100_000) })] } });
  const list = (await (await bench.completed(calling("path: list"))).result()) as JsonObject;
  assert.deepEqual(list["data"], [1, 2]);
  const large = (await (await bench.completed(calling("path: large"))).result()) as JsonObject;
  assert.equal(String(large["text"]).length, 100_000);
  const nothing = (await (await bench.completed(calling("path: nothing"))).result()) as JsonObject;
  assert.deepEqual([nothing["status"], nothing["data"]], ["completed", null]);
});

test("an async child is started and not waited for, and goes on when its parent has ended", async (t) => {
  const bench = setup(t, {
    files: { "child.yaml": "workflow: [{ step: slow, tool: { kind: http } }]" },
    tools: {
      slow: async () => {
        await bench.clock.sleep(60_000);
        return ok({ done: true });
      },
    },
  });
  const before = bench.clock.now();
  const ran = await bench.completed(calling("path: child.yaml, mode: async"));
  assert.ok(bench.clock.now() - before < 60_000, "The parent did not wait");
  const { status, path, execution_id } = (await ran.result()) as JsonObject;
  assert.deepEqual([status, path], ["started", "test"]);
  await bench.clock.runUntil(bench.runtime.close());
  const [, child] = bench.executions();
  assert.deepEqual([child?.state.executionId, child?.state.status], [execution_id, "COMPLETED"]);
});

test("a child that fails is an error of kind sub_playbook that says which child and why", async (t) => {
  const bench = setup(t, {
    files: { "child.yaml": "workflow: [{ step: inner, tool: { kind: http } }]" },
    tools: { inner: [bad("rate_limit", "HTTP_429")] },
  });
  const { state } = await bench.failed(calling("path: child.yaml"));
  const [, child] = bench.executions();
  const { message, ...error } = state.error!;
  assert.deepEqual(error, {
    kind: "sub_playbook",
    code: "HTTP_429",
    retryable: false,
    details: { execution_id: child?.state.executionId ?? "", status: "FAILED", cause: "it failed with HTTP_429" },
    step: "call",
    task: "call",
    attempt: 1,
  });
  assert.match(message, /the playbook 'test' \(execution \d+\) failed: it failed with HTTP_429/);
});

const SYSTEM = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: s, path: system/inner }\n";

test("a system playbook is called by system playbooks only, whatever its file is called", async (t) => {
  const bench = setup(t, { files: { "child.yaml": `${SYSTEM}workflow: [{ step: inner, tool: { kind: noop } }]\n` } });
  const call = calling('path: "{{ which }}"');
  const { state } = await bench.failed(call, { which: "child.yaml" });
  assert.equal(state.error?.code, "SYSTEM_PLAYBOOK");
  assert.match(state.error?.message ?? "", /'test' may not call 'system\/inner'/);
  assert.equal(bench.executions().length, 1, "nothing was started");
  const caller = `${SYSTEM.replace("inner", "outer")}${call}`;
  const ran = await bench.completed(caller, { which: "child.yaml" });
  assert.equal(((await ran.result()) as JsonObject)["path"] ?? "system/inner", "system/inner");
});

test("a rule may run a failed child again, as a new execution", async (t) => {
  const bench = setup(t, {
    files: { "child.yaml": "workflow: [{ step: inner, tool: { kind: http } }]" },
    tools: { inner: [bad("timeout", "T"), ok({ n: 2 })] },
  });
  const rules = "spec: { policy: { rules: [{ when: \"output.error.kind == 'sub_playbook'\", then: { do: retry } }] } }";
  const ran = await bench.completed(calling(`path: child.yaml, ${rules}`));
  assert.equal(((await ran.result()) as JsonObject)["n"], 2);
  assert.deepEqual(
    bench.executions().map(({ state }) => state.status),
    ["COMPLETED", "FAILED", "COMPLETED"],
  );
});

for (const [task, kind, message] of [
  ["path: nowhere.yaml", "configuration", /There is no playbook 'nowhere.yaml': no such file in .*metadata.path/],
  ["return_step: x", "configuration", /needs 'path' or 'catalog_id'/],
  ["path: broken.yaml", "configuration", /broken.yaml has 1 error; the first: .*broken.yaml:4:\d+ +.*nobody/],
] as const) {
  test(`a call with ${task} fails its task and says why`, async (t) => {
    const files = { "broken.yaml": "workflow: [{ step: a, next: [{ step: nobody }] }]" };
    const { state } = await setup(t, { files }).failed(calling(task));
    assert.equal(state.error?.kind, kind);
    assert.match(state.error?.message ?? "", message);
  });
}

test("a playbook that calls itself is refused when it is too deep", async (t) => {
  const bench = setup(t, { files: { "self.yaml": calling("path: self.yaml") } });
  const { state } = await bench.failed(calling("path: self.yaml"));
  assert.equal(bench.executions().length, CHILD_DEPTH_MAX + 1);
  assert.match(state.error?.message ?? "", /call each other more than 64 deep/);
  assert.equal(state.error?.message.match(/failed:/g)?.length, 1, "the message does not grow with each level");
  assert.equal(state.error?.kind, "sub_playbook");
});

test("files are found beside the document that calls, with and without their ending", async (t) => {
  const files = {
    "parts/outer.yaml": calling("path: inner"),
    "parts/inner.yml": "workflow: [{ step: a, tool: { kind: noop, result: { from: parts } } }]",
    "inner.yaml": "workflow: [{ step: a, tool: { kind: noop, result: { from: root } } }]",
  };
  const bench = setup(t, { files });
  const nested = (await (await bench.completed(calling("path: parts/outer"))).result()) as JsonObject;
  assert.equal(nested["from"], "parts");
  const direct = (await (await bench.completed(calling("path: ./inner.yaml"))).result()) as JsonObject;
  assert.equal(direct["from"], "root");
});

test("documents below the folder are found by their metadata.path, others that only mention it are not", async (t) => {
  const files = {
    "a/decoy.yaml": "metadata: { name: x, path: other, description: jobs/nightly }\nworkflow: [{ step: a }]",
    "b/deep/job.yaml":
      "metadata: { name: job, path: jobs/nightly }\nworkflow: [{ step: a, tool: { kind: noop, result: { found: true } } }]",
    "c/invalid.yaml": "metadata: { name: job, path: jobs/nightly }\nworkflow: []",
    "node_modules/job.yaml": "metadata: { name: job, path: jobs/hidden }\nworkflow: [{ step: a }]",
  };
  const bench = setup(t, { files });
  const found = (await (await bench.completed(calling("path: jobs/nightly"))).result()) as JsonObject;
  assert.equal(found["found"], true);
  const { state } = await bench.failed(calling("path: jobs/hidden"));
  assert.equal(state.error?.code, "NOT_FOUND");
});

test("an invalid document found by its metadata.path is reported as invalid, not as missing", async (t) => {
  const files = { "jobs.yaml": "metadata: { name: job }\npath: ignored\nworkflow: []", "bad.yaml": INVALID };
  const { state } = await setup(t, { files }).failed(calling("path: jobs/broken"));
  assert.equal(state.error?.code, "INVALID_PLAYBOOK");
  assert.match(state.error?.message ?? "", /bad\.yaml/);
});

const INVALID = `
metadata:
  name: job
  path: jobs/broken
workflow: []
`;

test("iteration names of the caller are iter.parent in the child, in its loops and outside", async (t) => {
  const files = {
    "child.yaml": `
workflow:
  - step: plain
    tool: { kind: http, url: "{{ iter.parent.city }} {{ iter.parent.index }} {{ iter.index is defined }}", set: { iter.own: 1 } }
    next: [{ step: each }]
  - step: each
    loop: { in: [x], iterator: letter }
    tool: { kind: http, url: "{{ iter.parent.city }} {{ iter.letter }} {{ iter.index }}" }
`,
  };
  const bench = setup(t, { files });
  await bench.completed(calling("path: child.yaml", "loop: { in: [Bern, Basel], iterator: city }"));
  assert.deepEqual(
    bench.calls.map((call) => call.config["url"]),
    ["Bern 0 false", "Bern x 0", "Basel 1 false", "Basel x 0"],
  );
});

test("a child that is called outside a loop has no iter.parent", async (t) => {
  const files = {
    "child.yaml": 'workflow: [{ step: a, tool: { kind: noop, result: { has: "{{ iter.parent is defined }}" } } }]',
  };
  const ran = await setup(t, { files }).completed(calling("path: child.yaml"));
  assert.equal(((await ran.result()) as JsonObject)["has"], false);
});

test("a child document is read and compiled once, however often it is called", async (t) => {
  const bench = setup(t, { files: { "child.yaml": CHILD } });
  await bench.completed(calling("path: child.yaml"));
  writeFileSync(`${bench.folder}/child.yaml`, "broken: [");
  const ran = await bench.completed(calling("path: child.yaml"));
  assert.equal(((await ran.result()) as JsonObject)["said"], "Hello World");
});
