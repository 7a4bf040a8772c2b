import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Client } from "./support/client.ts";
import { LONG, openStand, SHORT, type Stand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* Cursor loops whose frames several workers claim at once, and what becomes of rows whose worker dies (docs/playbooks.md). */

/**
 * The claim that docs/playbooks.md shows: the rows that this claim was given before, then rows that are unclaimed. While there is a row
 * in `gate`, it hangs after its rows were marked: its worker has claimed them and not reported it.
 */
const CLAIM = `
          update jobs set claimed_by = '{{ __claim_id }}'
          where id in (
            select id from jobs where claimed_by is null or claimed_by = '{{ __claim_id }}'
            order by claimed_by nulls last, id limit {{ __frame_max_rows }} for update skip locked
          );
          select pg_sleep(0.05) from generate_series(1, (select 1200 * count(*) from gate)::integer);
          select id from jobs where claimed_by = '{{ __claim_id }}' order by id`;

const document = (frame: string) => `
apiVersion: flow/v2
kind: Playbook
metadata: { name: cursor, path: cursor }
workload: { effects: "" }
workflow:
  - step: work
    loop:
      iterator: row
      cursor:
        kind: sqldb
        auth: jobs_db
        claim: |${CLAIM}
      spec: { mode: cursor, ${frame} }
    tool: { kind: http, method: POST, url: "{{ workload.effects }}/{{ execution_id }}/work/{{ row.id }}" }
    next: end
  - step: end
    tool: { kind: noop, result: { stats: "{{ work.stats }}" } }
`;

interface Set {
  stand: Stand;
  client: Client;
  server: { url: string };
  /** Starts the playbook on so many rows. */
  start(rows: number): Promise<string>;
  /** How often each row was worked on. */
  effects(executionId: string): Map<number, number>;
  /** The execution has ended well and every row was one iteration. */
  assertAllOnce(executionId: string, rows: number): Promise<void>;
}

async function setup(context: TestContext, settings: NodeJS.ProcessEnv, frame: string): Promise<Set> {
  const stand = await openStand(context, settings);
  const { hostname, port, username, password, pathname } = new URL(stand.databaseUrl);
  const data = { host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) };
  const file = join(stand.folder, "credentials.json");
  await writeFile(file, JSON.stringify({ jobs_db: { type: "sqldb", data, meta: { playbooks: ["**"] } } }));
  const { sql } = stand.database;
  await sql`create table jobs (id integer primary key, claimed_by text)`;
  await sql`create table gate (closed boolean)`;
  const server = await stand.server({ FLOW_CREDENTIALS_FILE: file });
  const client = await stand.client(server);
  await client.register(document(frame));
  const effects = (executionId: string) => {
    const counts = new Map<number, number>();
    for (const [name, count] of stand.effects.counts) {
      const [id, step, row] = name.split("/");
      if (id === executionId && step === "work") counts.set(Number(row), count);
    }
    return counts;
  };
  return {
    stand,
    client,
    server,
    effects,
    async start(rows) {
      await sql`insert into jobs (id) select generate_series(1, ${rows}::integer)`;
      return await client.start("cursor", { effects: stand.effects.url });
    },
    async assertAllOnce(executionId, rows) {
      await client.watch(executionId);
      const { body } = await client.call("GET", `/api/executions/${executionId}/result`);
      assert.equal(body.status, "COMPLETED", JSON.stringify(body));
      const { result } = body as unknown as { result: { stats: object } };
      assert.deepEqual(result.stats, { total: rows, success: rows, failed: 0 });
      const ids = [...effects(executionId).keys()].sort((left, right) => left - right);
      assert.deepEqual(
        ids,
        Array.from({ length: rows }, (_, index) => index + 1),
      );
    },
  };
}

/** The workers that the claims of this execution ran on. */
async function claimers(client: Client, executionId: string): Promise<string[]> {
  const { body } = await client.call("GET", `/api/executions/${executionId}/events?limit=500`);
  const events = body.events as unknown as {
    event_type: string;
    command_id?: string;
    worker?: string;
    meta?: object;
  }[];
  const claims = events.flatMap(({ event_type, command_id, meta }) =>
    event_type === "command.issued" && meta !== undefined && "claim" in meta ? [command_id] : [],
  );
  return events.flatMap(({ event_type, command_id, worker }) =>
    event_type === "command.claimed" && claims.includes(command_id) ? [worker ?? ""] : [],
  );
}

test("several workers claim frames at the same time, and every row is worked on once", async (t) => {
  const frame = "max_in_flight: 3, frame: { max_rows: 2, row_concurrency: 2 }";
  const { stand, client, server, start, effects, assertAllOnce } = await setup(t, LONG, frame);
  const names = ["one", "two", "three"];
  for (const name of names) await stand.worker(server, name);
  const held = stand.effects.hold("work");
  const id = await start(20);
  // Two rows of each of three frames: no frame waits for another one.
  await held.arrived(6);
  assert.deepEqual(
    new Set((await claimers(client, id)).slice(0, 3)),
    new Set(names),
    "each worker has claimed a frame",
  );
  held.release();
  await assertAllOnce(id, 20);
  assert.deepEqual(new Set(effects(id).values()), new Set([1]), "no row twice");
});

test("a worker that dies between its claim and its report loses no row, and no row becomes two iterations", async (t) => {
  const frame = "max_in_flight: 2, frame: { max_rows: 3, row_concurrency: 3 }";
  const { stand, client, server, start, assertAllOnce } = await setup(t, SHORT, frame);
  const { sql } = stand.database;
  await sql`insert into gate values (true)`;
  const dying = await stand.worker(server, "dying");
  const id = await start(10);
  // Both claims have marked their rows, and hang before their worker gets the answer.
  await until("six rows are marked", async () => {
    const [row] = await sql<{ count: number }[]>`select count(*)::integer from jobs where claimed_by is not null`;
    return row?.count === 6;
  });
  await dying.end("SIGKILL");
  await sql`delete from gate`;
  await stand.worker(server, "second");
  await assertAllOnce(id, 10);
  const taken = await sql<{ claims: number }[]>`select count(distinct claimed_by)::integer as claims from jobs`;
  assert.ok((taken[0]?.claims ?? 0) >= 4, "a claim that was asked again took its own rows, and not those of others");
  const workers = await claimers(client, id);
  assert.ok(workers.includes("dying") && workers.includes("second"));
});

test("a worker that dies while it works on rows: unfinished rows are worked on again, finished ones are not", async (t) => {
  const frame = "max_in_flight: 2, frame: { max_rows: 2, row_concurrency: 2 }";
  const { stand, server, start, effects, assertAllOnce } = await setup(t, SHORT, frame);
  const dying = await stand.worker(server, "dying");
  const held = stand.effects.hold("work");
  const id = await start(7);
  await held.arrived(4);
  await dying.end("SIGKILL");
  await stand.worker(server, "second");
  await held.arrived(8);
  held.release();
  await assertAllOnce(id, 7);
  const counts = [...effects(id).values()].sort((left, right) => left - right);
  assert.deepEqual(counts, [1, 1, 1, 2, 2, 2, 2]);
});
