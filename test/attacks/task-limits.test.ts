import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../faults/support/client.ts";
import { LONG, openStand } from "../faults/support/stand.ts";

/* Code of one playbook that takes all that it can get, on a worker that runs another one's. */

const playbook = (path: string, code: string) => `apiVersion: flow/v2
kind: Playbook
metadata: {name: ${path}, path: ${path}}
workflow:
  - step: start
    tool:
      kind: python
      code: |
${code.replace(/^/gm, "        ")}
`;
/** More than a sandbox may have by default (512). They sleep, and end with the task. */
const MANY = `
import os, time
count = 0
try:
    while count < 900:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError:
    pass
result = {"count": count}`;

test("a task that starts processes without end gets some hundreds; its worker runs other playbooks, then and afterwards", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = createClient(server.url);
  await client.register(playbook("many", MANY));
  await client.register(playbook("other", "result = {'sum': 1 + 1}"));
  const worker = await stand.worker(server, "w1");
  const [many = "", other = ""] = await Promise.all(["many", "other"].map((path) => client.start(path, {})));
  for (const id of [other, many, await client.start("other", {})]) {
    await client.watch(id);
    const { body } = await client.call("GET", `/api/executions/${id}/result`);
    const text = JSON.stringify(body);
    if (id !== many) {
      assert.match(text, /"sum":2/);
      continue;
    }
    const count = Number(/"count":(\d+)/.exec(text)?.[1]);
    assert.ok(count > 256 && count <= 520, `${count} processes`);
  }
  assert.ok(worker.isRunning());
});
