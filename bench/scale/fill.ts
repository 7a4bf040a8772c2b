import { setTimeout as sleep } from "node:timers/promises";
import { IDS_PER_MS } from "../../src/platform/system/ids.ts";
import type { HttpClient } from "../candidates/http-client.ts";
import type { Fleet } from "./fleet.ts";

/** What a service is filled with. */
export interface Filling {
  /** Events in the log, those of open executions among them. */
  events: number;
  /** Half of them wait for a worker with labels that none has, half are in workers' hands. */
  openExecutions: number;
  /** Workers that hold these. */
  holders: number;
}

/** Labels that no worker has: groups of waiting commands. */
const GROUPS = 10;
const GROUP = "nowhere";
const HOLDER = "holder";
const HELD = "held";
const COPIES_PER_STATEMENT = 1_000;
/** Distance of open executions in time: a hundred thousand of them began within the last ten minutes. */
const OPEN_STEP_MS = 6;
/** Those that have ended began before them, a thousand a second. */
const ENDED_STEP_MS = 1;
const TOLD_MS = 5_000;

/** Names of the workers that hold open commands. */
export function holderNames({ holders }: Filling): string[] {
  return Array.from({ length: holders }, (_, index) => `${HOLDER}-${index}`);
}

/**
 * Fills a service with copies of three executions that it ran itself: one of ten steps that has ended, one whose command waits, one whose
 * command is held. Each copy has all rows of the original, with other ids, cut into segments as they were written.
 */
export async function fill(fleet: Fleet, filling: Filling, log: (line: string) => void): Promise<void> {
  const [client] = fleet.clients;
  if (client === undefined) throw new Error("A service without servers");
  const half = filling.openExecutions / 2;
  const waiting = await waitingExecution(fleet, client, `${GROUP}-0`);
  const held = await waitingExecution(fleet, client, HELD);
  const ended = await fleet.execute({ kind: "chain", steps: 10 });
  // The claim is one event more.
  const open = half * ((await eventsOf(fleet, waiting.executionId)) + (await eventsOf(fleet, held.executionId)) + 1);
  const openMs = half * OPEN_STEP_MS;
  const parts: Part[] = [
    {
      source: ended,
      copies: Math.ceil((filling.events - open) / (await eventsOf(fleet, ended))),
      ...{ afterMs: 2 * openMs + 60_000, stepMs: ENDED_STEP_MS },
    },
    { source: waiting.executionId, copies: half, afterMs: 0, stepMs: OPEN_STEP_MS },
    { source: held.executionId, copies: half, afterMs: openMs, stepMs: OPEN_STEP_MS },
  ];
  let told = performance.now();
  let events = 0;
  for (const part of parts) {
    // Last of all, so that no lease runs out before its holder says that it lives.
    if (part.source === held.executionId) await holdFirst(client, held.commandId, filling);
    const each = await eventsOf(fleet, part.source);
    const copy = await copier(fleet, part, filling);
    for (let from = 1; from <= part.copies; from += COPIES_PER_STATEMENT) {
      const to = Math.min(part.copies, from + COPIES_PER_STATEMENT - 1);
      await copy(from, to);
      events += each * (to - from + 1);
      if (performance.now() - told < TOLD_MS) continue;
      told = performance.now();
      log(`  ${(events / 1e6).toFixed(1)} of ${(filling.events / 1e6).toFixed(1)} million events`);
    }
  }
}

/** Registers the holders; the first one claims the command that is copied for all of them. */
async function holdFirst(client: HttpClient, commandId: string, filling: Filling): Promise<void> {
  const capacity = filling.openExecutions;
  for (const name of holderNames(filling)) {
    await client.post("/api/worker/pool/register", { name, capacity, labels: { zone: HELD } });
  }
  await client.post(`/api/commands/${commandId}/claim`, { worker: `${HOLDER}-0` });
}

/** Starts an execution whose second step waits for a worker with a label. */
async function waitingExecution({ sql }: Fleet, client: HttpClient, zone: string) {
  const path = `bench/open-${zone}`;
  const content = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: open-${zone}, path: ${path}}\nworkflow:
  - {step: start, tool: {kind: noop}, next: {arcs: [{step: wait}]}}
  - {step: wait, spec: {labels: {zone: ${zone}}}, tool: {kind: noop}}\n`;
  await client.post("/api/catalog/register", { content });
  // The answer of the API.
  const { execution_id: executionId } = (await client.post("/api/execute", { path })) as { execution_id: string };
  for (;;) {
    const [row] = await sql<{ commandId: string }[]>`
      select command_id as "commandId" from flow.command where execution_id = ${executionId} and step = 'wait'`;
    if (row !== undefined) return { executionId, commandId: row.commandId };
    await sleep(50);
  }
}

async function eventsOf({ sql }: Fleet, executionId: string): Promise<number> {
  const [row] = await sql<[{ events: number }]>`
    select sum(coalesce(events, 1))::int as events from flow.event_log where execution_id = ${executionId}`;
  return row.events;
}

interface Part {
  source: string;
  copies: number;
  /** How long before the original the first copy began, and each further one before the one before it. */
  afterMs: number;
  stepMs: number;
}

/** Makes the copies `from` … `to` of an execution. */
async function copier(
  { sql }: Fleet,
  part: Part,
  filling: Filling,
): Promise<(from: number, to: number) => Promise<void>> {
  const { source, afterMs, stepMs } = part;
  const [row] = await sql<[{ last: number }]>`
    select greatest(last_event_id, (select max(command_id) from flow.command c where c.execution_id = e.execution_id))::float8 as last
    from flow.execution e where execution_id = ${source}`;
  const [first, last] = [Number(source), row.last];
  const shift = `(${afterMs * IDS_PER_MS}::bigint + n::bigint * ${stepMs * IDS_PER_MS})`;
  const text = (value: string) => copiedText(value, { first, last, shift, filling });
  const copies = "generate_series($1::int, $2::int) as n";
  const segments = await sql<{ id: string; catalog: string; path: string; events: number; body: string }[]>`
    select event_id as id, catalog_id as catalog, node_id as path, events, body from flow.event_log
    where execution_id = ${source} and body is not null order by event_id`;
  const statements = segments.map(
    ({ id, catalog, path, events, body }) => `
      insert into flow.event_log (event_id, execution_id, catalog_id, node_id, events, body)
      select ${id} - ${shift}, ${source} - ${shift}, ${catalog}, ${quoted(path)}, ${events}, ${text(body)} from ${copies}`,
  );
  statements.push(`
    insert into flow.execution (execution_id, catalog_id, path, version, status, progress, last_event_id, root_execution_id,
      result, started_at, ended_at, updated_at)
    select execution_id - ${shift}, catalog_id, path, version, status, progress, last_event_id - ${shift},
      root_execution_id - ${shift}, result, started_at - ${shift} / ${IDS_PER_MS} * interval '1 ms',
      ended_at - ${shift} / ${IDS_PER_MS} * interval '1 ms', updated_at
    from flow.execution cross join ${copies} where execution_id = ${source}`);
  const commands = await sql<{ id: string; body: string; labels: string; worker: string | null }[]>`
    select command_id as id, body::text as body, labels::text as labels, worker from flow.command where execution_id = ${source}`;
  for (const { id, body, labels, worker } of commands) {
    statements.push(`
      insert into flow.command (command_id, execution_id, catalog_id, step, status, attempt, kinds, labels, body, worker, claimed_at,
        lease_expires_at, created_at)
      select command_id - ${shift}, execution_id - ${shift}, catalog_id, step, status, attempt, kinds, (${text(labels)})::jsonb,
        (${text(body)})::json, ${worker === null ? "null" : text(worker)}, ${worker === null ? "null, null" : "now(), now() + interval '120 s'"}, created_at
      from flow.command cross join ${copies} where command_id = ${id}`);
  }
  return async (from, to) => {
    for (const statement of statements) await sql.unsafe(statement, [from, to]);
  };
}

/** SQL for a text of the original as copy `n` has it: each id that it had got moves by the same distance, workers and labels take turns. */
function copiedText(
  text: string,
  { first, last, shift, filling }: { first: number; last: number; shift: string; filling: Filling },
): string {
  const place = new RegExp(`(\\b\\d{12,16}\\b|${GROUP}-0|${HOLDER}-0)`);
  return text
    .split(place)
    .map((piece) => {
      if (piece === `${GROUP}-0`) return `'${GROUP}-' || n % ${GROUPS}`;
      if (piece === `${HOLDER}-0`) return `'${HOLDER}-' || n % ${filling.holders}`;
      const id = Number(piece);
      return id >= first && id <= last ? `(${piece} - ${shift})::text` : quoted(piece);
    })
    .join(" || ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'::text`;
}
