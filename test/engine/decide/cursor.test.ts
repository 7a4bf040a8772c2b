import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "../support/given.ts";
import { claimed, done, failed, rows } from "../support/reports.ts";

// Language document, section 6: cursor loops.

function cursor(spec: string, frame = "{}"): string {
  return `
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: "update t set taken = true returning *" }
      iterator: row
      spec: { mode: cursor, frame: ${frame}${spec} }
`;
}

test("a cursor claims, processes the rows, and claims again until no rows are left", () => {
  given(cursor("", "{ max_rows: 2, row_concurrency: 2 }"))
    .then("workflow.initialized each", "loop.started each", "command.issued each claim")
    .when(rows("each", [{ id: 1 }, { id: 2 }]))
    .then("command.issued each[0]", "command.issued each[1]")
    .when(done("each", "a", { iteration: 1 }))
    .then()
    .when(done("each", "b", { iteration: 0 }))
    .then("command.issued each claim")
    .when(rows("each", [{ id: 3 }]))
    .then("command.issued each[2]")
    .when(done("each", "c"), rows("each", []))
    .then(
      "command.issued each claim",
      "loop.done each 3/3",
      "step.completed each",
      "workflow.completed",
      "playbook.completed each",
    )
    .is({
      status: "COMPLETED",
      result: {
        results: ["b", "a", "c"],
        stats: { total: 3, success: 3, failed: 0 },
        iterations: 3,
        status: "completed",
      },
    });
});

test("a first claim without rows is a loop without iterations", () => {
  given(cursor("")).when(rows("each", [])).is({ status: "COMPLETED" });
});

test("the claim gets the number of rows to take, the iterations do not know a total", () => {
  const run = given(cursor("", "{ max_rows: 5 }"));
  assert.deepEqual(run.commands[0]?.claim, { max_rows: 5 });
  run.when(rows("each", [{ id: 1 }, { id: 2 }]));
  assert.deepEqual(run.commands[1]?.loop, { from: 0, items: [{ id: 1 }], max_in_flight: 1, stop_on_error: true });
});

test("row_concurrency is one by default", () => {
  given(cursor("", "{ max_rows: 3 }"))
    .when(rows("each", [1, 2, 3]))
    .is({ open: ["each"] });
});

test("process: frame makes one iteration of the rows", () => {
  const run = given(cursor("", "{ max_rows: 3, process: frame }")).when(rows("each", [[{ id: 1 }, { id: 2 }]]));
  assert.deepEqual(run.commands[1]?.loop?.items, [[{ id: 1 }, { id: 2 }]]);
});

test("a claim that fails fails the step", () => {
  given(cursor(""))
    .when(failed("each", "no such table"))
    .is({ status: "FAILED", error: /claim of step 'each' failed: no such table/ });
});

test("a claim that fails after successful rows fails the step", () => {
  given(cursor(""))
    .when(rows("each", [1]), done("each"), failed("each", "connection lost"))
    .is({ status: "FAILED", error: /claim of step 'each' failed: connection lost/ });
});

test("a claim that fails is not covered by tolerated rows", () => {
  given(cursor(", on_error: { tolerate: 5 }"))
    .when(rows("each", [1]), failed("each", "bad row"), failed("each", "connection lost"))
    .is({ status: "FAILED", error: /claim of step 'each' failed: connection lost/ });
});

test("a failed row ends the cursor, and the rows that were claimed with it are not run", () => {
  given(cursor("", "{ max_rows: 3 }"))
    .when(rows("each", [1, 2, 3]), failed("each", "bad row"))
    .is({ status: "FAILED", error: /1 of 1 iterations of step 'each' failed; the first: bad row/ });
});

test("on_error: continue continues to the last row", () => {
  given(cursor(", on_error: continue", "{ max_rows: 2 }"))
    .when(rows("each", [1, 2]), failed("each", "bad row"), done("each"), rows("each", []))
    .is({ status: "FAILED", error: /1 of 2/ });
});

test("after a second worker took over a claim command, only that worker's answer counts", () => {
  given(cursor(""))
    .when(claimed("each"), claimed("each"))
    .refuses("stale", ({ state, now }) => [
      {
        type: "command.completed",
        at: now,
        command_id: Object.keys(state.commands)[0] ?? "",
        attempt: 1,
        step: "each",
        rows: [1],
      },
    ])
    .when(rows("each", []))
    .is({ status: "COMPLETED" });
});

test("earlier rows leave the state", () => {
  const run = given(cursor("", "{ max_rows: 1 }"));
  for (let id = 0; id < 20; id += 1) run.when(rows("each", [{ id, text: "x".repeat(1_000) }]), done("each", id));
  assert.deepEqual(run.state.steps["each"]?.run?.loop?.cursor?.frames, []);
  assert.ok(JSON.stringify(run.state.steps["each"]?.run?.loop?.cursor).length < 300);
});

test("max_in_flight frames are claimed at once, each with its own rows at a time", () => {
  given(cursor(", max_in_flight: 3", "{ max_rows: 3, row_concurrency: 2 }"))
    .then(
      "workflow.initialized each",
      "loop.started each",
      "command.issued each claim",
      "command.issued each claim",
      "command.issued each claim",
    )
    .when(rows("each", ["a", "b", "c"]))
    .then("command.issued each[0]", "command.issued each[1]")
    .when(rows("each", ["d"]))
    .then("command.issued each[3]")
    // The frame of one row is over: its place is free for another claim, while the first one goes on.
    .when(done("each", "D", { iteration: 3 }))
    .then("command.issued each claim")
    .when(done("each", "A", { iteration: 0 }))
    .then("command.issued each[2]")
    .when(rows("each", []))
    .then()
    .when(done("each", "B", { iteration: 1 }), done("each", "C", { iteration: 2 }))
    .then()
    .when(rows("each", ["e"]))
    .then("command.issued each[4]")
    .when(done("each", "E", { iteration: 4 }))
    .then("loop.done each 5/5", "step.completed each", "workflow.completed", "playbook.completed each")
    .is({
      result: {
        results: ["A", "B", "C", "D", "E"],
        stats: { total: 5, success: 5, failed: 0 },
        iterations: 5,
        status: "completed",
      },
    });
});

test("after a claim without rows no further claim is made, and claims under way are awaited", () => {
  given(cursor(", max_in_flight: 2"))
    .when(rows("each", []))
    .then()
    .when(rows("each", ["late"]))
    .then("command.issued each[0]")
    .when(done("each"))
    .then("loop.done each 1/1", "step.completed each", "workflow.completed", "playbook.completed each");
});

test("a failed row stops all frames: what is claimed later is not worked on", () => {
  given(cursor(", max_in_flight: 2"))
    .when(rows("each", ["a"]), failed("each", "bad row", { iteration: 0 }))
    .then("command.issued each[0]")
    .when(rows("each", ["b"]))
    .is({ status: "FAILED", error: /1 of 1 iterations of step 'each' failed; the first: bad row/ });
});

test("a claim that fails lets the other frames end, and fails the step", () => {
  given(cursor(", max_in_flight: 2, on_error: continue", "{ max_rows: 2 }"))
    .when(rows("each", ["a", "b"]), failed("each", "deadlock"))
    .then("command.issued each[0]")
    .when(done("each", 1, { iteration: 0 }), done("each", 2, { iteration: 1 }))
    .is({ status: "FAILED", error: /claim of step 'each' failed: deadlock/ });
});

test("exec: local gives each frame to one worker", () => {
  const run = given(cursor(", max_in_flight: 2, policy: { exec: local }", "{ max_rows: 2 }")).when(
    rows("each", ["a", "b"]),
    rows("each", ["c", "d"]),
  );
  assert.deepEqual(
    run.commands.flatMap(({ loop }) => (loop === undefined ? [] : [loop.items])),
    [
      ["a", "b"],
      ["c", "d"],
    ],
  );
});

test("max_seconds counts from the moment when a frame's rows were known, for each of its rows", () => {
  const run = given(cursor("", "{ max_rows: 2, max_seconds: '{{ 5 }}' }")).when(rows("each", ["a", "b"]));
  const [first] = run.commands.flatMap(({ loop }) => loop?.frame_ends_at ?? []);
  assert.equal(first, 1_001_000 + 5_000);
  run.when(done("each"));
  assert.deepEqual(
    run.commands.flatMap(({ loop }) => loop?.frame_ends_at ?? []),
    [first, first],
  );
});

for (const [frame, message] of [
  ["{ max_rows: 0 }", /'max_rows' of the loop of step 'each' must be a whole number from 1, got 0/],
  ["{ row_concurrency: 1.5 }", /'row_concurrency'/],
  ["{ max_seconds: soon }", /'max_seconds' of the loop of step 'each' must be seconds above 0, got "soon"/],
] as const) {
  test(`a frame ${frame} fails the step before anything is claimed`, () => {
    const run = given(cursor("", frame)).is({ status: "FAILED", error: message });
    assert.equal(run.commands.length, 0);
  });
}

test("max_in_flight may be a template, and is bounded", () => {
  const run = given(cursor(", max_in_flight: '{{ 100000 }}'"));
  assert.equal(run.commands.length, 1_000);
});
