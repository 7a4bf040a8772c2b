import assert from "node:assert/strict";
import { accept } from "../../../src/engine/state/accept.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { resultOf } from "../../../src/engine/state/results.ts";
import { type ExecutionState, emptyState, isTerminal } from "../../../src/engine/state/state.ts";
import { boundedResult } from "../../../src/language/views/bounded-result.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { loadEvents, loadExecutions } from "../../../src/repositories/orchestration/load-execution.ts";
import { isReported } from "../../../src/schema/api/event-input.ts";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import { isMarker } from "../../../src/services/orchestration/memory/load-execution.ts";
import { type Client, ENDS, type Watched } from "./client.ts";
import type { Effects } from "./effects.ts";
import { until } from "./until.ts";

/** Where to look. */
export interface Places {
  database: Database;
  client: Client;
  effects: Effects;
}

/** What an execution is to come to. */
export interface Expected {
  /** Default COMPLETED. */
  status?: "COMPLETED" | "FAILED" | "CANCELLED";
  /** Compared when it is given. */
  result?: unknown;
  /** Code of its error. */
  code?: string;
  /** Effects that it must have had, without its id. Default: none in particular. */
  effects?: readonly string[];
  /** No command was claimed twice, and no effect was done twice. */
  once?: boolean;
  /** With `once`: workers that killed servers owed an answer. What one of these claimed and did not begin may be claimed again. */
  owed?: readonly string[];
}

/** What the log of an execution says about its commands. */
interface CommandStory {
  step: string;
  claims: number;
  /** Who claimed it when, and whether they began it. A server that runs a step itself tells no beginning. */
  holders: { worker: string; at: string; isBegun: boolean }[];
  ends: string[];
  iterations: { from: number; to: number } | undefined;
}

/**
 * Checks what must hold after every run, whatever happened on the way. Numbers are those of the list of invariants in the
 * design of the service.
 */
export async function assertSound(places: Places, run: Watched, expected: Expected = {}): Promise<void> {
  const { executionId } = run;
  // The last batches are worked out, and their markers written, a moment after the end.
  await until(`batches of ${executionId} are processed`, async () => (await openBatches(places, executionId)) === 0);
  const records = await until("the log is at rest", async () => {
    const read = await allEvents(places.database, executionId);
    const stored = (await loadExecutions(places.database, [executionId])).get(executionId);
    return stored?.lastEventId === read.at(-1)?.event_id && read;
  });
  const state = fold(records);
  onlyGrows(records, run.seen);
  endsOnce(records, state);
  const commands = commandStories(records);
  await assertProjection(places, records, state);
  await assertCommands(places, commands);
  await assertResults(places, executionId, records);
  assertEffects(places.effects, executionId, commands, expected);
  const { status = "COMPLETED", result, code } = expected;
  assert.equal(state.status, status, `Execution ${executionId}: ${JSON.stringify(state.error)}`);
  if (code !== undefined) assert.equal(state.error?.code, code);
  if (result !== undefined) assert.deepEqual(shown(state), result);
}

async function allEvents(database: Database, executionId: string): Promise<EventRecord[]> {
  const all: EventRecord[] = [];
  for (;;) {
    const page = await loadEvents(database, executionId, all.at(-1)?.event_id ?? 0, 1_000);
    all.push(...page);
    if (page.length < 1_000) return all;
  }
}

/** Folds the log from its beginning; every report in it must have been acceptable where it stands. */
function fold(records: readonly EventRecord[]): ExecutionState {
  const state = emptyState();
  for (const record of records) {
    if (isMarker(record)) continue;
    const event = fromRecord(record);
    if (isReported(event) || event.type === "command.claimed") {
      const told = `${event.type} ${record.event_id} of command ${event.command_id}, attempt ${event.attempt}`;
      assert.equal(accept(state, event), "accepted", told);
    }
    evolve(state, event);
  }
  return state;
}

/** 2: a reader that followed the log has seen all of it: no event came to be before one that was there. */
function onlyGrows(records: readonly EventRecord[], seen: readonly number[]): void {
  const before = records.filter(({ event_id }) => event_id <= (seen.at(-1) ?? 0)).map(({ event_id }) => event_id);
  assert.deepEqual(seen, before, "Events appeared in the log before others that had been read");
}

/** 1: one end. */
function endsOnce(records: readonly EventRecord[], state: ExecutionState): void {
  assert.ok(isTerminal(state.status), `The log leaves the execution ${state.status}`);
  const ends = records.map(({ event_type }) => event_type).filter((type) => ENDS.has(type));
  assert.equal(ends.length, 1, `The execution ended ${ends.length} times: ${ends}`);
  assert.deepEqual([state.commands, state.active, state.waiting], [{}, [], []], "Something is open after the end");
}

/** 2: rows and answers are what the log says. */
async function assertProjection(
  { database, client }: Places,
  records: readonly EventRecord[],
  state: ExecutionState,
): Promise<void> {
  const { executionId } = state;
  const [row] = await database.sql<{ status: string; result: unknown; error: unknown }[]>`
    select status, result, error from flow.execution where execution_id = ${executionId}`;
  assert.deepEqual(
    { ...row },
    { status: state.status, result: state.status === "COMPLETED" ? shown(state) : null, error: state.error },
  );
  const { snapshot } = (await loadExecutions(database, [executionId])).get(executionId) ?? {};
  if (snapshot != null) {
    const later = records.filter((record) => record.event_id > snapshot.eventId && !isMarker(record));
    const { issued: _, ...folded } = JSON.parse(snapshot.state) as ExecutionState & { issued: unknown };
    for (const record of later) evolve(folded, fromRecord(record));
    assert.deepEqual(folded, JSON.parse(JSON.stringify(state)), "The snapshot is not the fold of the log");
  }
  const { body } = await client.call("GET", `/api/executions/${executionId}`);
  assert.equal(body.status, state.status);
  // A step that was still to come when the execution ended will not come: it is told as skipped, and has no event.
  const toCome = isTerminal(state.status) ? "SKIPPED" : "PENDING";
  for (const { name, status, attempts } of body.steps) {
    const { status: told = "PENDING", attempts: claimed = 0 } = state.steps[name] ?? {};
    const folded = told === "PENDING" ? toCome : told;
    assert.deepEqual([name, status, attempts], [name, folded, claimed]);
  }
}

function shown(state: ExecutionState): unknown {
  const result = resultOf(state);
  return result === null ? null : boundedResult(result);
}

function commandStories(records: readonly EventRecord[]): Map<string, CommandStory> {
  const stories = new Map<string, CommandStory>();
  for (const record of records) {
    if (isMarker(record)) continue;
    const event = fromRecord(record);
    if (event.type === "command.issued") {
      assert.ok(!stories.has(event.command_id), `Command ${event.command_id} was issued twice`);
      stories.set(event.command_id, {
        step: event.step,
        claims: 0,
        holders: [],
        ends: [],
        iterations: event.iterations,
      });
    }
    const story = "command_id" in event ? stories.get(event.command_id) : undefined;
    if (story === undefined) continue;
    if (event.type === "command.claimed") {
      story.claims += 1;
      story.holders.push({ worker: event.worker ?? "", at: record.created_at, isBegun: false });
    }
    const holder = story.holders.at(-1);
    if (event.type === "command.started" && holder !== undefined) holder.isBegun = true;
    // 4: claims count up by one, and what is reported is of the last.
    if ("attempt" in event) assert.equal(event.attempt, story.claims, `${event.type} ${record.event_id}`);
    if (/^command\.(completed|failed|cancelled)$/.test(event.type)) story.ends.push(event.type);
  }
  return stories;
}

/**
 * 3, 4, 7: every command has one end. Its row says the same where it is left: always of a command that was claimed more than once or
 * cancelled in a worker's hands, and of others where a server of an older version ended them.
 */
async function assertCommands({ database }: Places, commands: ReadonlyMap<string, CommandStory>): Promise<void> {
  const rows = await database.sql<{ id: string; status: string; attempt: number }[]>`
    select command_id as id, status, attempt from flow.command where command_id = any(${[...commands.keys()]}::bigint[])`;
  const found = Object.fromEntries(rows.map(({ id, status, attempt }) => [id, [status, attempt]]));
  const told = [...commands].map(
    ([id, { ends, claims }]) => [id, [ends.map((type) => STATUS[type]).join(), claims]] as const,
  );
  for (const [id, [end]] of told) assert.ok(["COMPLETED", "FAILED", "CANCELLED"].includes(end), `${id} ended: ${end}`);
  const isGone = (id: unknown) => found[String(id)] === undefined;
  const left = told.filter(
    ([id, [end, claims]]) => !(isGone(id) && (end === "CANCELLED" ? claims === 0 : claims <= 1)),
  );
  assert.deepEqual(found, Object.fromEntries(left), "Commands and their log differ");
}

const STATUS: Readonly<Record<string, string>> = {
  "command.completed": "COMPLETED",
  "command.failed": "FAILED",
  "command.cancelled": "CANCELLED",
};

/** 7: no stored payload that nothing refers to. */
async function assertResults({ database }: Places, executionId: string, records: readonly EventRecord[]) {
  const rows = await database.sql<{ ref: string; state: string }[]>`
    select ref, state from flow.result where execution_id = ${executionId}`;
  const log = JSON.stringify(records);
  for (const { ref, state } of rows) {
    assert.equal(state, "stored", ref);
    assert.ok(log.includes(ref), `Nothing refers to the stored ${ref}`);
  }
}

/** 5: what was to be done was done; nothing more often than its command was claimed. */
function assertEffects(
  { counts }: Effects,
  executionId: string,
  commands: ReadonlyMap<string, CommandStory>,
  { effects = [], once = false, owed = [] }: Expected,
): void {
  for (const name of effects) assert.ok(counts.has(`${executionId}/${name}`), `${name} was never done`);
  for (const [name, count] of counts) {
    const [owner, step, iteration] = name.split("/");
    if (owner !== executionId) continue;
    const isOf = ({ step: of, iterations }: CommandStory) =>
      of === step &&
      (iterations === undefined || (iterations.from <= Number(iteration) && Number(iteration) < iterations.to));
    const claims = [...commands.values()].filter(isOf).reduce((sum, story) => sum + story.claims, 0);
    assert.ok(count <= claims, `${name} was done ${count} times in ${claims} attempts`);
    if (once) assert.equal(count, 1, `${name} was done ${count} times`);
  }
  if (!once) return;
  for (const [id, { step, holders }] of commands) {
    const counted = holders.filter(
      ({ worker, isBegun }, index) => index === holders.length - 1 || isBegun || !owed.includes(worker),
    );
    const told = holders.map(({ worker, at }) => `${worker} at ${at}`).join(", ");
    assert.equal(counted.length, 1, `Command ${id} of ${step} was claimed again: ${told}`);
  }
}

async function openBatches({ database }: Places, executionId: string): Promise<number> {
  const [row] = await database.sql<{ open: number }[]>`
    select count(*)::int as open from flow.batch
    where state in ('accepted', 'processing') and ${executionId}::bigint = any(execution_ids)`;
  return row?.open ?? 0;
}
