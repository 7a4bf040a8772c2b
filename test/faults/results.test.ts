import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { LONG, openStand } from "./support/stand.ts";

/* What happens to stored results (the fault matrix in the design): gone or altered where they are stored. */

/** A result of `kilobytes`, stored; a pause of which the test knows; a step that reads the result. */
const STORED = `apiVersion: flow/v2
kind: Playbook
metadata: {name: stored, path: stored}
workload: {effects: "", kilobytes: 1}
workflow:
  - step: produce
    tool:
      kind: python
      args: {kilobytes: "{{ workload.kilobytes }}"}
      code: |
        result = {"rows": [("%04d" % n) + "x" * 1020 for n in range(kilobytes)]}
      spec: {result: {inline_max_bytes: 1024}}
    next: {arcs: [{step: pause}]}
  - step: pause
    tool: {kind: http, method: POST, url: "{{ workload.effects }}/{{ execution_id }}/pause"}
    next: {arcs: [{step: read}]}
  - step: read
    tool: {kind: noop, result: {last: "{{ produce.rows[-1][:4] }}"}}
`;

test("a stored result that is missing or was altered, in the database or in its file: REFERENCE_NOT_AVAILABLE, never the altered text", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = await stand.client(server);
  await client.register(STORED);
  await stand.worker(server, "one");
  const { sql } = stand.database;
  const filesOf = async () => {
    const folder = join(stand.folder, ".flow", "results");
    const names = await readdir(folder, { recursive: true });
    return names.filter((name) => name.endsWith(".json")).map((name) => join(folder, name));
  };
  const faults: [kilobytes: number, fault: (id: string) => Promise<unknown>][] = [
    [20, (id) => sql`delete from flow.result where execution_id = ${id}`],
    [20, (id) => sql`update flow.result set payload = 'other'::bytea where execution_id = ${id}`],
    [20, (id) => sql`update flow.result set sha256 = ${"0".repeat(64)} where execution_id = ${id}`],
    [1_500, async () => await Promise.all((await filesOf()).map((file) => rm(file)))],
    [1_500, async () => await Promise.all((await filesOf()).map((file) => writeFile(file, '{"rows": ["other"]}')))],
  ];
  for (const [kilobytes, fault] of faults) {
    const held = stand.effects.hold("pause");
    const id = await client.start("stored", { effects: stand.effects.url, kilobytes });
    await held.arrived();
    const { ref } = await refOf(id);
    const path = `/results/resolve?ref=${encodeURIComponent(ref)}`;
    assert.equal((await client.call("GET", path)).body.rows.length, kilobytes);
    await fault(id);
    const { status, body } = await client.call("GET", path);
    assert.deepEqual([status, body.code], [404, "REFERENCE_NOT_AVAILABLE"]);
    held.release();
    await stand.finish(client, [id], { status: "FAILED", code: "REFERENCE_NOT_AVAILABLE" });
  }
  // The happy twin: it is left alone.
  const id = await client.start("stored", { effects: stand.effects.url, kilobytes: 1_500 });
  await stand.finish(client, [id], { result: { last: "1499" }, once: true });

  async function refOf(executionId: string): Promise<{ ref: string }> {
    const [row] = await sql<{ ref: string }[]>`select ref from flow.result where execution_id = ${executionId}`;
    assert.ok(row !== undefined);
    return row;
  }
});
