import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { followEvents } from "../../../src/services/executions/event-stream.ts";
import { openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";

/* A stream on a server that hears nothing of what others write: what it finds in the database is all it has. */

const api = await openApi();
const { sql } = api.database;
const work = workWith(api);
await work.register("runs/followed", ONE_STEP);

const deaf = { watch: () => () => undefined };

/** The types of the events that a stream brings until it ends, or waits for a notice that does not come (`idle`). */
async function followed(executionId: string, after: number, beforeRow: () => Promise<void>): Promise<string[]> {
  const hooked = new Proxy(sql, {
    apply(target, self, parts) {
      const run = () => Reflect.apply(target, self, parts);
      const [text] = parts as [string[] | undefined];
      const isRow = Array.isArray(text) && text.join("").includes("from flow.execution where execution_id");
      return isRow ? beforeRow().then(run) : run();
    },
  });
  const database: Database = { ...api.database, sql: hooked };
  const types: string[] = [];
  for await (const item of followEvents(
    { database, orchestrator: deaf },
    executionId,
    { after },
    AbortSignal.timeout(60_000),
  )) {
    types.push(item === "idle" ? item : item.event_type);
    if (item === "idle") break;
  }
  return types;
}

/** Calls it once. */
function once(call: () => Promise<void>): () => Promise<void> {
  let isCalled = false;
  return async () => {
    if (isCalled) return;
    isCalled = true;
    await call();
  };
}

async function lastEvent(executionId: string): Promise<number> {
  return Number((await work.get(`/api/executions/${executionId}`)).body["last_event_id"]);
}

/** What a server writes half a second after a report's consequences, also behind the end of the execution. */
async function mark(executionId: string): Promise<void> {
  const id = (await lastEvent(executionId)) + 1;
  const body = [{ event_id: id, type: "batch.completed", at: Date.now(), context: { processing_ms: 1 } }];
  await sql`
    insert into flow.event_log (event_id, execution_id, catalog_id, node_id, events, body)
    select ${id}, execution_id, catalog_id, path, 1, ${JSON.stringify(body)} from flow.execution where execution_id = ${executionId}`;
  await sql`update flow.execution set last_event_id = ${id} where execution_id = ${executionId}`;
}

async function claimed(): Promise<[id: string, command: Claimed]> {
  const id = await work.execute("runs/followed");
  const [command] = await work.claim("following");
  assert.equal(command?.execution_id, id);
  return [id, command as Claimed];
}

test("a stream ends also where something is written between its look at the events and that at the execution", async () => {
  const [id, command] = await claimed();
  await work.finish("following", command);
  await work.runToEnd(id);
  const types = await followed(
    id,
    0,
    once(() => mark(id)),
  );
  assert.ok(types.includes("playbook.completed"), types.join(", "));
  assert.equal(types.at(-1), "batch.completed");
});

test("a stream that saw nothing new ends with an execution that ends before its second look", async () => {
  const [id, command] = await claimed();
  const end = once(async () => {
    await work.finish("following", command);
    await work.runToEnd(id);
  });
  const types = await followed(id, await lastEvent(id), end);
  assert.ok(types.includes("playbook.completed"), types.join(", "));
  assert.ok(!types.includes("idle"), types.join(", "));
});

test("a stream that goes on behind the end, where only a mark is left, ends", async () => {
  const [id, command] = await claimed();
  await work.finish("following", command);
  await work.runToEnd(id);
  const end = await lastEvent(id);
  await mark(id);
  // The server's own mark may come too.
  assert.deepEqual(new Set(await followed(id, end, async () => undefined)), new Set(["batch.completed"]));
});

test("a stream of an execution that goes on waits, whatever it was asked to begin after", async () => {
  const [id, command] = await claimed();
  const last = await lastEvent(id);
  assert.deepEqual(await followed(id, last, async () => undefined), ["idle"]);
  assert.equal((await followed(id, 0, async () => undefined)).at(-1), "idle");
  await work.finish("following", command);
});
