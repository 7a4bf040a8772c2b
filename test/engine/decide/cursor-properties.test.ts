import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState, type OpenCommand } from "../../../src/engine/state/state.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { type Given, given } from "../support/given.ts";
import { raw } from "../support/reports.ts";

// Cursor loops under random workers, some of which die between the claim's statement and its report. A failure prints the
// seed; `FLOW_SEED=<seed>` runs with it again.

const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000_000);

/** A table whose claim marks rows with the id of the claim, and gives that id its rows again. */
interface Table {
  left: number[];
  given: Map<string, number[]>;
}

interface Settings {
  rows: number;
  maxRows: number;
  concurrency: number;
  frames: number;
  exec: "distributed" | "local";
  /** What happens next, and to which of the open commands. */
  moves: number[];
}

const settings: fc.Arbitrary<Settings> = fc.record({
  rows: fc.integer({ min: 0, max: 30 }),
  maxRows: fc.integer({ min: 1, max: 5 }),
  concurrency: fc.integer({ min: 1, max: 3 }),
  frames: fc.integer({ min: 1, max: 4 }),
  exec: fc.constantFrom("distributed", "local"),
  moves: fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 20, maxLength: 60 }),
});

function start({ maxRows, concurrency, frames, exec }: Settings): Given {
  return given(`
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: x }
      iterator: row
      spec:
        mode: cursor
        max_in_flight: ${frames}
        policy: { exec: ${exec} }
        frame: { max_rows: ${maxRows}, row_concurrency: ${concurrency} }
`);
}

/** Does one thing with one of the open commands: what a worker would, or its death. */
function move(run: Given, table: Table, maxRows: number, number: number): void {
  const open = Object.entries(run.state.commands);
  const [id, command] = open[number % open.length] ?? [];
  if (id === undefined || command === undefined) return;
  const at = 2_000_000;
  const ref = { command_id: id, step: "each", attempt: command.attempt + 1, worker: "w" };
  const events: FlowEvent[] = [{ type: "command.claimed", at, ...ref }];
  if (command.claim) {
    const rows = table.given.get(id) ?? table.left.splice(0, maxRows);
    table.given.set(id, rows);
    // It died: its rows are claimed and not reported. Another worker will claim again.
    if (number % 3 !== 0) events.push({ type: "command.completed", at, ...ref, rows });
  } else {
    events.push(...iterations(command, ref, number));
  }
  run.when(raw(...events));
}

/** Some of the command's iterations, or all, each with its row as the result. */
function iterations(command: OpenCommand, ref: { command_id: string; step: string; attempt: number }, number: number) {
  const { from = 0, to = 0, endedBelow = 0 } = command.iterations ?? {};
  const until = number % 4 === 0 ? endedBelow + 1 : to;
  const events: FlowEvent[] = [];
  for (let iteration = endedBelow; iteration < until; iteration += 1) {
    const body = { at: 2_000_000, ...ref, worker: "w", iteration };
    const done = {
      task: "each",
      task_run_id: `${ref.command_id}-${iteration}`,
      status: "ok",
      run: 1,
      final: true,
    } as const;
    events.push({ type: "task.done", ...body, ...done, result: { value: iteration }, bytes: 4, duration_ms: 1 });
    events.push({ type: "loop.iteration.completed", ...body, tasks: ["each"] });
  }
  if (until < to) return events;
  return [...events, { type: "command.completed", at: 2_000_000, ...ref, worker: "w", iterations: to - from } as const];
}

function assertBounded(state: ExecutionState, { frames, concurrency }: Settings): void {
  const cursor = state.steps["each"]?.run?.loop?.cursor;
  if (cursor == null) return;
  assert.ok(cursor.frames.length + cursor.claims <= frames, "More frames than max_in_flight");
  assert.ok(cursor.frames.every(({ open, items }) => open <= Math.max(concurrency, items.length)));
  assert.ok(
    cursor.frames.every(({ open, next, from, items }) => open > 0 || next < from + items.length),
    "A frame that has ended stayed",
  );
}

test("every claimed row is one iteration, whichever workers die, and the loop ends", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  const runs = fc.property(settings, (chosen) => {
    const table: Table = { left: Array.from({ length: chosen.rows }, (_, index) => index), given: new Map() };
    const run = start(chosen);
    for (let step = 0; run.state.status === "RUNNING"; step += 1) {
      assert.ok(step < 10_000, "The loop does not end");
      move(run, table, chosen.maxRows, chosen.moves[step % chosen.moves.length]! + step);
      assertBounded(run.state, chosen);
    }
    assert.equal(run.state.status, "COMPLETED");
    const worked = run.commands.flatMap(({ loop }) => loop?.items ?? []);
    assert.deepEqual(
      [...worked].sort((left, right) => Number(left) - Number(right)),
      Array.from({ length: chosen.rows }, (_, index) => index),
    );
    assert.deepEqual(run.state.steps["each"]?.loop, { total: chosen.rows, done: chosen.rows, failed: 0 });
    const stored: FlowEvent[] = JSON.parse(JSON.stringify(run.log));
    assert.deepEqual(stored.reduce(evolve, emptyState()), run.state);
  });
  fc.assert(runs, { seed, numRuns: Number(process.env["FLOW_PROPERTY_RUNS"] ?? 200) });
});
