import assert from "node:assert/strict";
import { test } from "node:test";
import { LOG_BYTES_MAX, LOG_LINE_CHARS_MAX, LOG_LINES_MAX, type TaskLog } from "../../../src/schema/words/event.ts";
import { createRunLog } from "../../../src/worker/reporting/progress.ts";
import { type BenchOptions, setup } from "../support/bench.ts";
import { recordsOf } from "../support/recorded.ts";
import { bad, type Call, ok } from "../support/scripted-tools.ts";

// What a task writes is read from its events: the last lines in `task.done`, new ones meanwhile in `task.progress`.

const TASK = "workflow: [{ step: s, tool: { kind: shell, name: say } }]";

const saying =
  (...lines: string[]) =>
  ({ log }: Call) => {
    for (const line of lines) log(line);
    return ok({});
  };

test("what a run wrote stands in its task.done", async (t) => {
  const bench = setup(t, { tools: { say: saying("one", "", "two") } });
  const ran = await bench.completed(TASK);
  assert.deepEqual(ran.of("task.done")[0]?.log, { lines: ["one", "", "two"] });
  assert.deepEqual(ran.of("task.progress"), []);
});

test("a run that wrote nothing has no log, and no further event", async (t) => {
  const bench = setup(t, { tools: { say: [ok({})] } });
  const ran = await bench.completed(TASK);
  assert.equal(Object.hasOwn(ran.of("task.done")[0] ?? {}, "log"), false);
});

test("of a run that failed the lines are kept too, of each try its own", async (t) => {
  let tries = 0;
  const say = ({ log }: Call) => {
    tries += 1;
    log(`try ${tries}`);
    return bad("timeout", "T");
  };
  const bench = setup(t, { tools: { say } });
  const ran = await bench.failed(
    "workflow: [{ step: s, tool: { kind: shell, name: say, retry: { max_attempts: 2 } } }]",
  );
  const logs = ran.of("task.done").map(({ run, log }) => [run, log?.lines]);
  assert.deepEqual(logs, [
    [1, ["try 1"]],
    [2, ["try 2"]],
  ]);
});

test("each iteration of a loop has its own lines", async (t) => {
  const bench = setup(t, { tools: { say: (call) => saying(`item ${call.config["cmd"]}`)(call) } });
  const ran = await bench.completed(`
workflow:
  - step: each
    loop: { in: [a, b], iterator: x }
    tool: { kind: shell, name: say, cmd: "{{ x }}" }
`);
  const logs = ran.of("task.done").map(({ iteration, log }) => [iteration, log?.lines]);
  assert.deepEqual(logs, [
    [0, ["item a"]],
    [1, ["item b"]],
  ]);
});

test("while a run goes on, its new lines are reported, each once, with the number of the first", async (t) => {
  const bench = setup(t, {
    tools: {
      async say({ log, progress }) {
        for (let at = 0; at < 6; at += 1) {
          log(`line ${at}`);
          if (at === 0) progress?.({ rows: 7 });
          await bench.clock.sleep(1_000);
        }
        return ok({});
      },
    },
  });
  const ran = await bench.completed(TASK);
  const told = ran.of("task.progress").map(({ log, progress }) => [log, progress]);
  assert.deepEqual(told, [
    [{ lines: ["line 0"] }, { rows: 7 }],
    [{ lines: ["line 1", "line 2"], from: 1 }, { rows: 7 }],
    [{ lines: ["line 3", "line 4"], from: 3 }, { rows: 7 }],
  ]);
  assert.equal(ran.of("task.done")[0]?.log?.lines.length, 6);
});

test("a run without new lines and numbers reports nothing more", async (t) => {
  const bench = setup(t, {
    tools: {
      async say({ log }) {
        log("begin");
        await bench.clock.sleep(60_000);
        return ok({});
      },
    },
  });
  const told = (await bench.completed(TASK)).of("task.progress");
  assert.deepEqual(
    told.map(({ log, progress }) => [log, progress]),
    [[{ lines: ["begin"] }, {}]],
  );
});

const CANARY = "canary-51c0ffee";

function assertUntold(bench: ReturnType<typeof setup>): void {
  for (const { state, events } of bench.executions()) {
    assert.ok(!JSON.stringify(recordsOf(state, events)).includes(CANARY));
  }
}

test("the log of a task with a sensitive result is in no event; its line count is", async (t) => {
  for (const [step, task] of [
    ["spec: { result: { sensitive: true } }", ""],
    ["", ", spec: { result: { sensitive: true } }"],
  ]) {
    const say = async ({ log }: Call) => {
      log(`the answer is ${CANARY}`);
      await bench.clock.sleep(5_000);
      log("and more");
      return bad("timeout", "T");
    };
    const bench: ReturnType<typeof setup> = setup(t, { tools: { say } });
    const ran = await bench.failed(`
workflow:
  - step: s
    ${step}
    tool: { kind: shell, name: say${task} }
`);
    assert.deepEqual(ran.of("task.done")[0]?.log, { lines: [], dropped: 2 });
    assert.deepEqual(ran.of("task.progress"), []);
    assertUntold(bench);
  }
});

test("a sensitive result that a later task writes is hidden in its lines", async (t) => {
  const bench = setup(t, { tools: { secret: [ok({ token: CANARY })], say: saying(`got ${CANARY}`, "done") } });
  const ran = await bench.completed(`
workflow:
  - step: secret
    spec: { result: { sensitive: true } }
    tool: { kind: http, name: secret }
    next: [{ step: use }]
  - step: use
    tool: { kind: shell, name: say, cmd: "{{ secret.token }}" }
`);
  assert.deepEqual(ran.of("task.done")[1]?.log?.lines, ["got [secret]", "done"]);
  assertUntold(bench);
});

const CREDENTIAL: BenchOptions["credentials"] = { db: { type: "custom", data: { password: CANARY } } };

test("a credential is hidden in the lines, also where a line is cut off within it", async (t) => {
  const long = `${"x".repeat(LOG_LINE_CHARS_MAX - 8)}${CANARY}`;
  const say = async (call: Call) => {
    saying(`password ${CANARY}`, long)(call);
    await bench.clock.sleep(1_000);
    return ok({});
  };
  const bench: ReturnType<typeof setup> = setup(t, { tools: { say }, ...{ credentials: CREDENTIAL } });
  const ran = await bench.completed("workflow: [{ step: s, tool: { kind: shell, name: say, auth: db } }]");
  const { lines = [] } = ran.of("task.done")[0]?.log ?? {};
  assert.equal(lines[0], "password [secret]");
  assert.ok(!lines.join("\n").includes("canary"), lines[1]);
  assert.deepEqual(ran.of("task.progress")[0]?.log?.lines, lines);
});

/** The log of a run with these lines, and the parts in which it was told. */
function logged(lines: string[], each = Number.POSITIVE_INFINITY): { whole: TaskLog | undefined; parts: TaskLog[] } {
  const log = createRunLog(false);
  const parts: TaskLog[] = [];
  lines.forEach((line, index) => {
    log.add(line);
    const news = (index + 1) % each === 0 ? log.news() : undefined;
    if (news !== undefined) parts.push(news);
  });
  return { whole: log.whole(), parts };
}

const numbered = (count: number, pad = 0) => Array.from({ length: count }, (_, at) => String(at).padStart(pad, "-"));

test("of many lines the last are kept, and how many came before", () => {
  const lines = numbered(100_000);
  const { whole } = logged(lines);
  assert.deepEqual(whole, { lines: lines.slice(-LOG_LINES_MAX), dropped: 100_000 - LOG_LINES_MAX });
});

test("of large lines fewer are kept: no log is larger than its bound, whatever is in it", () => {
  for (const filler of ["x", "ä", "\u0001", "🦊", '"', "\ud83d"]) {
    const { whole } = logged(Array.from({ length: 300 }, (_, at) => `${at} ${filler.repeat(900)}`));
    const { lines = [], dropped = 0 } = whole ?? {};
    const bytes = Buffer.byteLength(JSON.stringify(lines));
    assert.ok(bytes <= LOG_BYTES_MAX + 2, `${filler}: ${bytes} bytes`);
    assert.ok(lines.length > 0);
    assert.equal(lines.length + dropped, 300);
    assert.match(lines.at(-1) ?? "", /^299 /);
  }
});

test("a long line is cut off, and no character in half", () => {
  for (const text of ["y".repeat(1_001), `${"y".repeat(998)}🦊🦊`, "🦊".repeat(5_000)]) {
    const { whole } = logged([text]);
    const [line = ""] = whole?.lines ?? [];
    assert.ok(line.length <= LOG_LINE_CHARS_MAX && line.endsWith("…"), String(line.length));
    assert.doesNotMatch(line, /\p{Surrogate}/u);
    assert.ok(text.startsWith(line.slice(0, -1)));
  }
  assert.deepEqual(logged(["y".repeat(1_000)]).whole?.lines, ["y".repeat(1_000)]);
});

test("lines that came too fast to be reported leave a gap that their numbers show", () => {
  const { parts } = logged(numbered(1_000, 4), 500);
  assert.deepEqual(
    parts.map(({ from, lines }) => [from, lines.length, lines.at(-1)]),
    [
      [300, 200, "-499"],
      [800, 200, "-999"],
    ],
  );
});
