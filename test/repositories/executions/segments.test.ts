import assert from "node:assert/strict";
import { before, test } from "node:test";
import fc from "fast-check";
import type { Database } from "../../../src/repositories/database/database.ts";
import { changedSteps } from "../../../src/repositories/executions/changed-steps.ts";
import { listTaskRuns } from "../../../src/repositories/executions/command-runs.ts";
import type { EventFilter } from "../../../src/repositories/executions/event-filter.ts";
import { listEvents, loadThese } from "../../../src/repositories/executions/event-list.ts";
import { markEvents } from "../../../src/repositories/executions/event-marks.ts";
import { deleteExecution } from "../../../src/repositories/executions/execution-delete.ts";
import { loadEvents } from "../../../src/repositories/orchestration/load-execution.ts";
import { type LogRows, packSegments, SEGMENT_EVENTS_MAX } from "../../../src/repositories/orchestration/segments.ts";
import { type EventRecord, type LogEntry, type Marker, recordOf } from "../../../src/schema/rules/event-record.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { anyEvent, eventTypes } from "../../support/engine/any-event.ts";
import { openServiceDatabase } from "../service-database.ts";

// A log of segments is read as one of single events is: every reader, wherever the segments were cut. A failed property prints its
// seed and path.

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const AT = Date.parse("2026-11-21T10:00:00.123Z");
const OWNER = { catalogId: "1", path: "a/b" };
let lastId = 1_000;

interface TwinLogs {
  /** The same events with the same ids: as segments, as single rows, and some of each. */
  segments: string;
  rows: string;
  mixed: string;
  events: EventRecord[];
}

/** Few names, so that filters find some; odd texts come with {@link anyEvent}. */
const plainEvent = fc.record({
  type: fc.constantFrom("task.done", "step.completed", "command.claimed", "task.progress", "workflow.completed"),
  at: fc.constantFrom(AT, AT + 0.7, AT + 1_000),
  step: fc.constantFrom("a", 'b "quoted"', "ä\n"),
  command_id: fc.constantFrom("7", "8"),
  worker: fc.constantFrom("fast", "slow"),
  attempt: fc.constantFrom(1, 2),
  task: fc.constantFrom("t1", "t2"),
  status: fc.constantFrom("ok", "error"),
  error: fc.option(fc.record({ message: fc.constantFrom("Broke", "at \u0000 nul", "half \ud800") }), {
    nil: undefined,
  }),
  result: fc.constantFrom(undefined, { value: { type: "task.done", text: "x".repeat(2_000) } }, { value: null }),
}) as unknown as fc.Arbitrary<FlowEvent>;

const anyMarker = fc.constant<Marker>({ type: "batch.completed", at: AT, context: { batch: 1 } });

const anyLog = fc.tuple(
  fc.array(
    fc.oneof(
      { weight: 6, arbitrary: plainEvent },
      { weight: 2, arbitrary: fc.oneof(...eventTypes().map((type) => anyEvent(type, AT))) },
      { weight: 1, arbitrary: anyMarker },
    ),
    { minLength: 1, maxLength: 40 },
  ),
  fc.array(fc.nat(39), { maxLength: 12 }),
  fc.nat(2),
);

async function write([list, cuts, gap]: [(FlowEvent | Marker)[], number[], number]): Promise<TwinLogs> {
  const ids = { segments: String(++lastId), rows: String(++lastId), mixed: String(++lastId) };
  const first = lastId + 1;
  const entries = list.map((event, index): LogEntry => {
    const eventId = first + index * (1 + gap);
    return { eventId, event, ...(index % 2 === 1 && { parentEventId: eventId - 1, parentExecutionId: "5" }) };
  });
  const starts = [...new Set([0, ...cuts])].sort((left, right) => left - right);
  const parts = starts.map((start, index) => entries.slice(start, starts[index + 1]));
  const packed = (executionId: string, some: LogEntry[][]) => {
    const log: LogRows = { segments: [], rows: [] };
    for (const part of some) packSegments({ ...OWNER, executionId }, part, log);
    return log;
  };
  const records = (executionId: string, some: LogEntry[]) =>
    some.map((entry) => recordOf(entry, { ...OWNER, executionId }));
  await insert(packed(ids.segments, parts));
  await insert({ segments: [], rows: records(ids.rows, entries) });
  const [some = [], ...others] = parts;
  const { segments, rows } = packed(ids.mixed, others);
  await insert({ segments, rows: [...records(ids.mixed, some), ...rows] });
  lastId = entries.at(-1)?.eventId ?? 0;
  return { ...ids, events: records(ids.rows, entries) };
}

/** Rows are written through the view, as a server of the version before segments does. */
async function insert({ segments, rows }: LogRows): Promise<void> {
  const { sql } = database;
  for (const { eventId, executionId, catalogId, path, events, body } of segments) {
    const row = { event_id: eventId, execution_id: executionId, catalog_id: catalogId, node_id: path, events, body };
    await sql`insert into flow.event_log ${sql(row)}`;
  }
  for (const record of rows) {
    const known = Object.entries(record).filter(([, value]) => value !== undefined);
    const row = Object.fromEntries(
      known.map(([field, value]) => [field, typeof value === "string" ? held(value) : value]),
    );
    await sql`insert into flow.event ${sql(row)}`;
  }
}

/** A text as a column of the database holds it. */
const held = (text: string) => text.replaceAll("\u0000", "\ufffd");

/** What two readers gave, without the execution's id. */
function same(left: unknown, right: unknown, what: string): void {
  const without = (value: unknown) =>
    JSON.parse(JSON.stringify(value, (key, inner) => (key === "execution_id" ? undefined : inner)));
  assert.deepEqual(without(left), without(right), what);
}

const anyFilter: fc.Arbitrary<EventFilter> = fc.record(
  {
    eventType: fc.constantFrom("task.done", "command.claimed", "none"),
    step: fc.constantFrom("a", 'b "quoted"', "ä\n"),
    commandId: fc.constantFrom("7", "9"),
    worker: fc.constantFrom("fast", "none"),
    isFailed: fc.boolean(),
    text: fc.constantFrom("BROKE", "quoted", '"', "ä", "\n", "nothing"),
  },
  { requiredKeys: [] },
);

test("pages of segments are pages of rows: every filter, both directions, from any event to any other", async () => {
  const anyPage = fc.record(
    { limit: fc.integer({ min: 1, max: 12 }), isDescending: fc.boolean(), isShort: fc.boolean() },
    { requiredKeys: ["limit"] },
  );
  const property = fc.asyncProperty(
    anyLog,
    anyFilter,
    anyPage,
    fc.nat(60),
    fc.nat(60),
    async (log, filter, page, from, to) => {
      const { segments, rows, mixed, events } = await write(log);
      const [first, last] = [events[0]?.event_id ?? 0, events.at(-1)?.event_id ?? 0];
      const bounds = [{ after: 0 }, { after: first + from }, { after: first - 1 + from, before: last + 2 - to }];
      for (const bound of bounds) {
        const query = { ...filter, ...page, ...bound };
        const expected = await listEvents(database, rows, query);
        same(await listEvents(database, segments, query), expected, `segments, ${JSON.stringify(query)}`);
        same(await listEvents(database, mixed, query), expected, `mixed, ${JSON.stringify(query)}`);
      }
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test("loading, marks, changed steps, runs of a command and single events: the same of segments and of rows", async () => {
  const property = fc.asyncProperty(
    anyLog,
    anyFilter,
    fc.nat(60),
    fc.integer({ min: 1, max: 7 }),
    async (log, filter, from, every) => {
      const { segments, rows, mixed, events } = await write(log);
      const after = (events[0]?.event_id ?? 0) - 1 + from;
      for (const id of [segments, mixed]) {
        for (const start of [0, after]) {
          same(await loadEvents(database, id, start, every), await loadEvents(database, rows, start, every), "a page");
          same(await loadEvents(database, id, start, 100), await loadEvents(database, rows, start, 100), "all");
          for (const which of [{}, filter]) {
            const query = { ...which, after: start, counted: 3, every };
            same(await markEvents(database, id, query), await markEvents(database, rows, query), JSON.stringify(query));
          }
          const changed = [...((await changedSteps(database, id, start)) ?? [])].sort();
          same(changed, [...((await changedSteps(database, rows, start)) ?? [])].sort(), "changed steps");
        }
        const runs = { commandId: "7", attempt: undefined, iteration: undefined };
        same(
          await listTaskRuns(database, { ...runs, executionId: id }),
          await listTaskRuns(database, { ...runs, executionId: rows }),
          "runs",
        );
        const wanted = events.filter((_, index) => index % every === 0).map(({ event_id }) => String(event_id));
        same(await loadThese(database, id, wanted), await loadThese(database, rows, wanted), "single events");
      }
    },
  );
  await fc.assert(property, { numRuns: 40 });
});

test("the view shows the events of segments with every column", async () => {
  await fc.assert(
    fc.asyncProperty(anyLog, async (log) => {
      const { segments, rows, mixed } = await write(log);
      const viewed = (id: string) =>
        database.sql`select * from flow.event where execution_id = ${id} order by event_id`;
      const expected = await viewed(rows);
      same(await viewed(segments), expected, "segments");
      same(await viewed(mixed), expected, "mixed");
    }),
    { numRuns: 20 },
  );
});

for (const count of [1, SEGMENT_EVENTS_MAX - 1, SEGMENT_EVENTS_MAX, SEGMENT_EVENTS_MAX + 1, 3 * SEGMENT_EVENTS_MAX]) {
  test(`${count} events of one flush are segments of at most ${SEGMENT_EVENTS_MAX}`, () => {
    const log: LogRows = { segments: [], rows: [] };
    packSegments({ ...OWNER, executionId: "0" }, plain(count), log);
    const sizes = log.segments.map(({ events }) => events);
    assert.equal(log.segments.length, Math.ceil(count / SEGMENT_EVENTS_MAX));
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      count,
    );
    assert.deepEqual(log.rows, []);
    assert.equal(log.segments.at(-1)?.eventId, count);
  });
}

test("large events get segments of their own", () => {
  const log: LogRows = { segments: [], rows: [] };
  const event = { type: "workflow.initialized", at: 1, step: "x".repeat(40_000) } as const;
  packSegments(
    { ...OWNER, executionId: "0" },
    plain(4).map(({ eventId }) => ({ eventId, event })),
    log,
  );
  assert.deepEqual(
    log.segments.map(({ events, eventId }) => [events, eventId]),
    [
      [1, 1],
      [1, 2],
      [1, 3],
      [1, 4],
    ],
  );
});

test("an execution is deleted with its segments, and others keep theirs", async () => {
  const { sql } = database;
  const started: FlowEvent = { type: "workflow.initialized", at: AT, step: "a" };
  const { segments, rows } = await write([Array.from({ length: 30 }, () => started), [3, 9], 0]);
  await sql`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id, ended_at)
    values (${segments}, 1, 'a/b', 1, 'COMPLETED', ${lastId}, ${segments}, now())`;
  assert.equal(await deleteExecution(database, segments, async () => undefined), "deleted");
  assert.deepEqual(await loadEvents(database, segments, 0, 100), []);
  assert.equal((await loadEvents(database, rows, 0, 100)).length, 30);
});

function plain(count: number): LogEntry[] {
  return Array.from({ length: count }, (_, at) => ({
    eventId: at + 1,
    event: { type: "workflow.initialized", at: 1, step: "a" },
  }));
}
