import assert from "node:assert/strict";
import { test } from "node:test";
import { createSecrets } from "../../../src/engine/sealing/secrets.ts";
import { createLocalResults } from "../../../src/local/results.ts";
import { createSealer } from "../../../src/platform/crypto/sealing.ts";
import type { ChildRequest } from "../../../src/ports/children.ts";
import type { SealingPlace } from "../../../src/ports/sealing.ts";
import type { Command } from "../../../src/schema/words/command.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import type { TaskError } from "../../../src/schema/words/outcome.ts";
import type { WorkerDeps } from "../../../src/worker/deps.ts";
import { sealWork } from "../../../src/worker/secrets/seal-work.ts";

const SECRET = "hunter22-and-more";
const sealer = createSealer([{ id: "k1", key: Buffer.alloc(32, 7) }]);
const SEALED = sealer.seal(SECRET);

function commandWith(context: Partial<Command["context"]> = {}): Command {
  const ids = { command_id: "100", execution_id: "3", catalog_id: "1", step_run_id: "99" };
  return {
    ...ids,
    step: "s",
    step_started_at: 0,
    context: { workload: {}, vars: {}, steps: {}, input: {}, ...context },
  };
}

/** What one command's work is wrapped in; `ends` is what its children give. */
function setup({ command = commandWith(), ends = null as Json, hasKey = true } = {}) {
  const events: FlowEvent[] = [];
  const asked: SealingPlace[] = [];
  const calls: ChildRequest[] = [];
  const results = createLocalResults();
  const sealers: WorkerDeps["sealers"] = {
    sealerOf: async (place) => {
      asked.push(place);
      if (hasKey) return sealer;
      throw new FlowError("ENCRYPTION", "there is no key");
    },
  };
  const deps: WorkerDeps = {
    worker: "w",
    tools: { get: () => Promise.reject(new Error("no tools here")) },
    credentials: { find: () => Promise.resolve(undefined) },
    sealers,
    children: {
      run: async (request) => {
        calls.push(request);
        return { executionId: "4", path: "c", status: "COMPLETED", result: { value: ends }, error: null };
      },
    },
    results,
    clock: { now: () => 0, sleep: () => Promise.resolve() },
    random: () => 0,
    env: {},
    log: () => undefined,
  };
  const secrets = createSecrets();
  const receive = async (reported: readonly FlowEvent[]) => void events.push(...reported);
  const work = sealWork(deps, command, receive, secrets, new AbortController().signal);
  return { work, secrets, events, asked, calls, results };
}

const CLAIM = { command_id: "100", attempt: 1, step: "s" };

function done(value: Json, more: JsonObject = {}): FlowEvent {
  const run = { task: "t", task_run_id: "r", status: "ok", run: 1, final: true, duration_ms: 1 } as const;
  return { type: "task.done", at: 0, ...CLAIM, ...run, result: { value, ...more } } as FlowEvent;
}

test("without secrets events pass as they are, and no key is asked for", async () => {
  const { work, events, asked } = setup();
  const event = done({ a: 1 });
  const command = commandWith({ workload: { a: ["b"] } });
  await work.report([event]);
  assert.equal(events[0], event);
  assert.equal(await work.open(command), command);
  await work.deps.results.save("noetl://execution/3/x", '{"a":1}');
  assert.deepEqual(asked, []);
});

test("a secret that stands in no value asks for no key either: of a message it is hidden", async () => {
  const { work, secrets, events, asked } = setup();
  secrets.note(SECRET);
  const error = {
    kind: "unknown",
    code: "X",
    message: `no ${SECRET}`,
    retryable: false,
    details: [SECRET],
  } satisfies TaskError;
  await work.report([done({ a: 1 }), { type: "command.failed", at: 0, ...CLAIM, error }]);
  const [, failed] = events;
  assert.equal(failed?.type, "command.failed");
  assert.deepEqual(failed.error, { ...error, message: "no [secret]", details: ["[secret]"] });
  assert.deepEqual(asked, []);
});

test("every value of an event is sealed, names are not, and previews and tracebacks are hidden", async () => {
  const { work, secrets, events, asked } = setup();
  secrets.note([SECRET, "step"]);
  const ref = {
    kind: "result_ref",
    ref: "noetl://execution/3/step/step/task/t/run/1",
    store: "kv",
    scope: "permanent",
    meta: { content_type: "application/json", bytes: 1, sha256: "" },
    extracted: { token: SECRET },
    preview: { truncated: true, bytes: 100, sample: `{"token":"${SECRET}","again":"hunter22-a` },
  };
  const about = {
    meta: { attempt: 1, duration_ms: 1 },
    http: { status: 200, headers: { cookie: SECRET } },
    py: { exception: "X", traceback: SECRET },
  };
  await work.report([
    done({ token: SECRET }, { virtual: { command_0: { value: SECRET } }, about }),
    { ...done(null), result: { ref } } as FlowEvent,
    {
      type: "command.completed",
      at: 0,
      ...CLAIM,
      step: "step",
      tasks: ["step"],
      set: [["step", SECRET]],
      rows: [SECRET],
    },
  ]);
  assert.doesNotMatch(JSON.stringify(events), /hunter22/);
  const [inline, stored, completed] = events as unknown as [
    { result: JsonObject },
    { result: { ref: typeof ref } },
    JsonObject,
  ];
  assert.deepEqual(inline.result, {
    value: { token: SEALED },
    virtual: { command_0: { value: SEALED } },
    about: {
      ...about,
      http: { status: 200, headers: { cookie: SEALED } },
      py: { exception: "X", traceback: "[secret]" },
    },
  });
  const preview = { ...ref.preview, sample: '{"token":"[secret]","again":"[secret]' };
  assert.deepEqual(stored.result.ref, { ...ref, extracted: { token: SEALED }, preview });
  const { step, tasks, set, rows } = completed;
  assert.deepEqual([step, tasks, set, rows], ["step", ["step"], [["step", SEALED]], [SEALED]]);
  assert.equal(asked.length, 1, "one key for all");
});

test("a command is opened with all that it was given, and what was opened is sealed again", async () => {
  const command: Command = {
    ...commandWith({
      workload: { url: `https://h/?t=${SEALED}` },
      vars: { pin: sealer.seal(47114711) },
      steps: { a: { value: { token: SEALED } } },
      input: { list: [SEALED] },
      parent_iter: { item: SEALED },
    }),
    loop: { from: 0, items: [SEALED, { deep: SEALED }], max_in_flight: 1, stop_on_error: false },
  };
  const { work, events } = setup({ command });
  const opened = await work.open(command);
  assert.deepEqual(opened.context, {
    workload: { url: `https://h/?t=${SECRET}` },
    vars: { pin: 47114711 },
    steps: { a: { value: { token: SECRET } } },
    input: { list: [SECRET] },
    parent_iter: { item: SECRET },
  });
  assert.deepEqual(opened.loop?.items, [SECRET, { deep: SECRET }]);
  await work.report([done({ token: SECRET, pin: 47114711 })]);
  assert.doesNotMatch(JSON.stringify(events), /hunter22|47114711/);
});

test("results are stored sealed and loaded open; text that escapes are in too", async () => {
  const { work, secrets, results } = setup();
  secrets.note('quo"ted\nsecret');
  const value = { a: 'x quo"ted\nsecret y', b: "plain" };
  const saved = await work.deps.results.save("noetl://execution/3/a", JSON.stringify(value));
  assert.match(JSON.stringify(await results.load("noetl://execution/3/a")), /"x \[sealed:k1:[\w-]+\] y","b":"plain"/);
  assert.deepEqual(await work.deps.results.load("noetl://execution/3/a"), value);
  const again = await work.deps.results.save("noetl://execution/3/b", JSON.stringify(value));
  assert.equal(again.sha256, saved.sha256, "work that is done again stores the same");
});

test("a text that was not read is searched for secrets where there are some, and passed on where there are none", async () => {
  const value = { a: `x ${SECRET} y`, b: "plain".repeat(10_000) };
  const bytes = Buffer.from(JSON.stringify(value));
  const free = setup();
  await free.work.deps.results.save("noetl://execution/3/a", bytes);
  assert.deepEqual(await free.results.load("noetl://execution/3/a"), value);
  assert.deepEqual(free.asked, []);
  const { work, secrets, results } = setup();
  secrets.note(SECRET);
  await work.deps.results.save("noetl://execution/3/a", bytes);
  const stored = await results.load("noetl://execution/3/a");
  assert.doesNotMatch(JSON.stringify(stored), new RegExp(SECRET));
  assert.deepEqual(await work.deps.results.load("noetl://execution/3/a"), value);
  await work.deps.results.save("noetl://execution/3/b", bytes, { sensitive: true });
  assert.match(String(await results.load("noetl://execution/3/b")), /^\[sealed:k1:[\w-]+\]$/);
});

test("a sensitive result is stored as one sealed text; the store does not see the flag", async () => {
  const { work, secrets, results } = setup();
  secrets.note(SECRET);
  const value = { token: SECRET, name: "Ada Lovelace", list: [1, 2] };
  secrets.note(value, { isSensitive: true, charsMin: 8 });
  await work.deps.results.save("noetl://execution/3/a", JSON.stringify(value), { sensitive: true });
  const stored = await results.load("noetl://execution/3/a");
  assert.match(String(stored), /^\[sealed:k1:[\w-]+\]$/);
  const opened = sealer.open(String(stored));
  const inner = { ...value, token: SEALED };
  assert.deepEqual(
    opened,
    { kind: "result", json: JSON.stringify(inner) },
    "what credentials gave is sealed by itself",
  );
  assert.deepEqual(await work.deps.results.load("noetl://execution/3/a"), value);
});

test("a child is given sealed inputs and gives sealed results back, which are opened", async () => {
  const { work, secrets, calls } = setup({ ends: { back: SEALED } });
  secrets.note(SECRET);
  const request: ChildRequest = {
    path: "c",
    input: { token: SECRET },
    async: false,
    parent: { execution_id: "3", step: "s", iter: { item: SECRET } },
    parentFile: "p.yaml",
    key: "k",
  };
  const outcome = await work.deps.children.run(request, new AbortController().signal);
  assert.deepEqual(outcome.result, { value: { back: SECRET } });
  assert.deepEqual(calls, [
    { ...request, input: { token: SEALED }, parent: { ...request.parent, iter: { item: SEALED } } },
  ]);
});

test("the key is that of the root, however deep a command's execution stands", async () => {
  for (const [context, rootExecutionId] of [
    [{}, "3"],
    [{ parent_execution_id: "2" }, "2"],
    [{ parent_execution_id: "2", root_execution_id: "1" }, "1"],
  ] as const) {
    const { work, asked } = setup({ command: commandWith(context) });
    await work.open([SEALED]);
    assert.deepEqual(asked, [{ executionId: "3", rootExecutionId }]);
  }
});

test("without a key nothing that would need sealing is sent", async () => {
  const { work, secrets, events } = setup({ hasKey: false });
  secrets.note(SECRET);
  await assert.rejects(work.report([done(SECRET)]), { code: "ENCRYPTION" });
  await assert.rejects(work.deps.results.save("noetl://execution/3/a", `"${SECRET}"`), { code: "ENCRYPTION" });
  assert.deepEqual(events, []);
});
