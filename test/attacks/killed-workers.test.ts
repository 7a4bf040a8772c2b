import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnswerBody, createClient } from "../faults/support/client.ts";
import { openStand, SHORT } from "../faults/support/stand.ts";
import { until } from "../faults/support/until.ts";

/* A playbook whose task ends the process of its worker, one worker after the other. */

const LIMITED = { ...SHORT, FLOW_COMMAND_LOST_LIMIT: "3" };
// A sandbox keeps a task from its worker's process; these tests are about what happens where it does not.
const OPEN = { FLOW_TASK_ISOLATION: "none", FLOW_WORKER_DRAIN_SECONDS: "1" };
const KILLER = `apiVersion: flow/v2
kind: Playbook
metadata: {name: killer, path: killer}
workflow:
  - step: start
    tool: {kind: shell, command: "kill -9 $PPID", retry: {max_attempts: 5}}
    next:
      arcs:
        - {step: rescue, when: "{{ event.name == 'step.failed' and output.error.code == 'WORKER_LOST' }}"}
  - step: rescue
    tool: {kind: noop, result: {workers: "{{ start.error.details.workers | default(none) }}"}}
`;
const SLOW = `apiVersion: flow/v2
kind: Playbook
metadata: {name: slow, path: slow}
workflow:
  - step: start
    tool: {kind: shell, command: "test -f done || sleep 60"}
`;

interface Run extends AnswerBody {
  steps: { name: string; status: string; attempts: number; started_at: string; error?: RunError }[];
}
type RunError = { kind: string; code: string; message: string; details: { workers: string[] } };

test("a task that kills its worker ends three workers and no fourth; its step fails with WORKER_LOST and names them", async (t) => {
  const stand = await openStand(t, LIMITED);
  const server = await stand.server();
  const client = createClient(server.url);
  await client.register(KILLER);
  const id = await client.start("killer", {});
  for (const name of ["w1", "w2", "w3"]) {
    const worker = await stand.worker(server, name, OPEN);
    await until(`${name} is killed`, () => !worker.isRunning());
  }
  const fourth = await stand.worker(server, "w4", OPEN);
  await client.watch(id);
  const body = (await client.call("GET", `/api/executions/${id}`)).body as Run;
  assert.equal(body.status, "COMPLETED", "the arc took the failure");
  const [start, rescue] = body.steps;
  assert.equal(start?.error?.code, "WORKER_LOST");
  assert.deepEqual(start?.error?.details, { workers: ["w1", "w2", "w3"] });
  assert.match(start?.error?.message ?? "", /lost 3 times: workers 'w1', 'w2' and 'w3' stopped answering/);
  assert.equal(rescue?.status, "COMPLETED");
  assert.ok(fourth.isRunning(), "the fourth worker did not run it");
});

test("a worker that is told to stop gives its command back: that is no loss, however often", async (t) => {
  const stand = await openStand(t, LIMITED);
  const server = await stand.server();
  const client = createClient(server.url);
  await client.register(SLOW);
  const id = await client.start("slow", {});
  for (let round = 1; round <= 4; round += 1) {
    const worker = await stand.worker(server, `w${round}`, OPEN);
    await until("it runs", async () => {
      const { body } = await client.call("GET", `/api/executions/${id}`);
      return body.commands[0]?.["worker"] === `w${round}`;
    });
    await worker.end("SIGTERM");
  }
  const { body } = await client.call("GET", `/api/executions/${id}`);
  assert.deepEqual([body.status, body.steps[0]?.attempts], ["RUNNING", 4]);
});
