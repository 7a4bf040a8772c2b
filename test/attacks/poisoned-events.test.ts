import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../faults/support/client.ts";
import { closeEventGate } from "../faults/support/event-gate.ts";
import { LONG, openStand, type Stand } from "../faults/support/stand.ts";

/*
 * Events over which one server after the other dies, each time they are delivered again. The servers are killed while they write what
 * follows, as if that had ended them.
 */

const document = (name: string, workflow: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: ${name}}\nworkflow:\n${workflow}`;
/** What follows from the end of its first step has an event that no other document has. */
const DEADLY = document(
  "deadly",
  "  - {step: start, tool: {kind: noop}, next: {arcs: [{step: never}]}}\n  - {step: never, when: '{{ false }}', tool: {kind: noop}}\n",
);
const HARMLESS = document("harmless", "  - {step: start, tool: {kind: noop}}\n");

/** A minute passes for what the dead server held. */
async function passAMinute({ database: { sql } }: Stand): Promise<void> {
  await sql`update flow.batch set lease_expires_at = lease_expires_at - interval '1 minute',
    updated_at = updated_at - interval '1 minute'`;
  await sql`update flow.runtime set heartbeat_at = heartbeat_at - interval '1 minute' where kind = 'server'`;
}

test("after the third server that was killed over it an execution fails with POISONED, and others go on", async (t) => {
  const stand = await openStand(t, LONG);
  let server = await stand.server();
  const { port } = server;
  const client = createClient(server.url);
  for (const content of [DEADLY, HARMLESS]) await client.register(content);
  await stand.worker(server, "one");
  const gate = await closeEventGate(stand.database, "step.skipped");
  const deadly = await client.start("deadly", {});
  for (const deaths of [1, 2, 3]) {
    await gate.reached();
    await server.end("SIGKILL");
    await gate.cutOff();
    await passAMinute(stand);
    const { status } = await stand.database.sql`select status from flow.execution where execution_id = ${deadly}`.then(
      ([row]) => row as { status: string },
    );
    assert.equal(status, "RUNNING", `after ${deaths} deaths`);
    // The third successor does not try again.
    server = await stand.server({}, port);
  }
  await client.watch(deadly);
  const { body } = await client.call("GET", `/api/executions/${deadly}`);
  const { error } = body as unknown as { error: { code: string; message: string } };
  assert.deepEqual([body.status, error.code], ["FAILED", "POISONED"]);
  assert.match(
    error.message,
    /event batch \d+ could not be worked out\. Its server stopped in the middle of it, 3 times/,
  );
  const harmless = await client.start("harmless", {});
  await client.watch(harmless);
  assert.equal((await client.call("GET", `/api/executions/${harmless}`)).body.status, "COMPLETED");
  await gate.open();
});
