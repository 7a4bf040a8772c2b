import assert from "node:assert/strict";
import { before, test } from "node:test";
import { readEvents, type SentEvent } from "../../support/servers/sse.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(() => work.register("s", TWO_STEPS));

const open = async (id: string, headers: Record<string, string> = {}, query = "") => {
  const response = await api.open.request(`/api/executions/${id}/stream${query}`, { headers });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  return readEvents(response);
};

const typeOf = (event: SentEvent | undefined) => ((event?.data ?? {}) as Body)["event_type"];

async function logged(id: string): Promise<number[]> {
  const { body } = await work.get(`/api/executions/${id}/events?limit=500`);
  return (body["events"] as Body[]).map(({ event_id }) => Number(event_id));
}

test("events come while the execution runs, each with its id, and the stream ends with the execution", async () => {
  const id = await work.execute("s");
  const reader = await open(id);
  const first = await reader.next();
  assert.equal(typeOf(first), "playbook.initialized");
  assert.equal(first?.id, String(((first?.data ?? {}) as Body)["event_id"]));
  const rest = reader.rest();
  await work.runToEnd(id);
  const events = await rest;
  assert.equal(events.at(-1)?.event, "end");
  assert.ok(events.some((event) => typeOf(event) === "playbook.completed"));
  const sent = [first, ...events.slice(0, -1)].map((event) => Number(event?.id));
  assert.deepEqual(sent, (await logged(id)).slice(0, sent.length));
});

test("a client that connects again with Last-Event-ID gets what it has missed, once", async () => {
  const id = await work.execute("s");
  const reader = await open(id);
  await reader.next();
  const last = await reader.next();
  await reader.leave();
  await work.runToEnd(id);
  const again = await open(id, { "last-event-id": last?.id ?? "" }, "?after=0");
  const events = await again.rest();
  const ids = events.slice(0, -1).map((event) => Number(event.id));
  assert.deepEqual(ids, (await logged(id)).slice(2, 2 + ids.length));
  assert.equal(events.at(-1)?.event, "end");
});

for (const when of ["while it is followed", "before it is followed"]) {
  test(`the stream of an execution that is cancelled ${when} has all of its log`, async () => {
    const id = await work.execute("s");
    const [command] = await work.claim("w");
    assert.equal(command?.execution_id, id);
    const followed = when === "while it is followed" ? (await open(id)).rest() : undefined;
    await work.post(`/api/executions/${id}/cancel`);
    const events = await (followed ?? (await open(id)).rest());
    assert.equal(events.at(-1)?.event, "end");
    const sent = events.slice(0, -1);
    assert.deepEqual(
      sent.map((event) => Number(event.id)),
      await logged(id),
    );
    const types = sent.map(typeOf);
    assert.ok(types.indexOf("execution.cancelled") < types.length - 1, types.join(", "));
    const { body } = await work.get(`/api/executions/${id}`);
    assert.equal(Number(sent.at(-1)?.id), body["last_event_id"]);
  });
}

test("a stream that begins behind the end ends at once", async () => {
  const id = await work.execute("s");
  await work.runToEnd(id);
  const ids = await logged(id);
  const events = await (await open(id, { "last-event-id": String(ids.at(-1)) })).rest();
  assert.deepEqual(
    events.map(({ event }) => event),
    ["end"],
  );
});

test("a Last-Event-ID that is no id is 422", async () => {
  const id = await work.execute("s");
  const response = await api.open.request(`/api/executions/${id}/stream`, { headers: { "last-event-id": "x" } });
  assert.equal(response.status, 422);
});

test("a client that leaves ends the listening, and one that does not read asks for nothing", async () => {
  const id = await work.execute("s");
  const { orchestrator } = api.service;
  let listeners = 0;
  const { watch } = orchestrator;
  orchestrator.watch = (executionId, listener) => {
    listeners += 1;
    const end = watch(executionId, listener);
    return () => {
      listeners -= 1;
      end();
    };
  };
  try {
    const reader = await open(id);
    assert.equal(listeners, 0, "nothing is looked up before the first read");
    for (let event = await reader.next(); typeOf(event) !== "command.issued"; ) {
      event = await reader.next();
    }
    assert.equal(listeners, 1);
    await reader.leave();
    assert.equal(listeners, 0);
  } finally {
    orchestrator.watch = watch;
  }
});

test("a server that stops ends its streams, without telling that the execution has ended", async () => {
  const stopped = await openApi();
  const other = workWith(stopped);
  await other.register("s", TWO_STEPS);
  const id = await other.execute("s");
  const reader = readEvents(await stopped.open.request(`/api/executions/${id}/stream`));
  await reader.next();
  const rest = reader.rest();
  stopped.stopping.abort();
  assert.ok(!(await rest).some(({ event }) => event === "end"));
});
