import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { FOLLOW_MS, followEvents } from "../../../src/cli/watch/follow.ts";
import type { EventRecord } from "../../../src/schema/rules/event-record.ts";
import { closedPort, type RecordedRequest, startHttpServer } from "../../support/servers/http-server.ts";

/* Time limits are short here, so that what takes seconds takes milliseconds; nothing waits for time to pass otherwise. */
const QUICK = { first: 20_000, silence: 20_000, poll: 5, pauseMax: 10, streamRest: 100_000, notice: 0, away: 2_000 };

/** An execution whose log has these types of event, with the ids 1, 2, 3, … */
function logOf(...types: string[]): EventRecord[] {
  return types.map((event_type, index) => ({
    ...{ event_id: index + 1, execution_id: "7", catalog_id: "1", event_type, status: "RUNNING" },
    ...{ node_id: "demo", node_name: "demo", node_type: "playbook" as const, created_at: "2026-01-31T12:00:00.000Z" },
  }));
}

const LOG = logOf("playbook.initialized", "command.issued", "step.completed", "playbook.completed");

interface Answers {
  stream?(request: RecordedRequest, response: ServerResponse): void;
  /** Longest silence of a stream, milliseconds. */
  silence?: number;
  /** `away`: the connection is cut off. */
  events?(after: number): EventRecord[] | "away";
  status?: string;
  /** How a stream that is not given is refused. Default: there is no such route. */
  refusal?: { status: number; body: Record<string, unknown> };
}

const NO_ROUTE = { status: 404, body: { error: "no such route", code: "NOT_FOUND", request_id: "1" } };

/** A server with these answers. A stream that is not given is refused; events are those of {@link LOG}. */
async function setup(t: TestContext, answers: Answers) {
  const { stream, events, silence = 20_000, status = "RUNNING", refusal = NO_ROUTE } = answers;
  const server = await startHttpServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://h");
    const send = (body: unknown, code = 200) => {
      response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (pathname.endsWith("/stream")) {
      if (stream === undefined) send(refusal.body, refusal.status);
      else {
        response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
        response.flushHeaders();
        stream(request, response);
      }
    } else if (pathname.endsWith("/events")) {
      const after = Number(searchParams.get("after"));
      const all = events?.(after) ?? LOG;
      if (all === "away") response.destroy();
      else send({ events: all.filter(({ event_id }) => event_id > after), next_cursor: null });
    } else send(executionOf(status));
  });
  t.after(() => server.close());
  const signal = new AbortController();
  const target = { url: server.origin, origin: "a test" };
  const ms = { ...QUICK, first: silence, silence };
  const follow = (after = 0, onNotice?: (text: string) => void) =>
    followEvents(target, "7", { after, signal: signal.signal, ms, ...(onNotice !== undefined && { onNotice }) });
  return { server, follow, stop: () => signal.abort() };
}

function executionOf(status: string): Record<string, unknown> {
  return {
    ...{ execution_id: "7", catalog_id: "1", path: "demo", version: 1, status, progress: 0, parent_execution_id: null },
    ...{ started_at: "2026-01-31T12:00:00.000Z", ended_at: null, duration_ms: 1, result: null, error: null },
    ...{ workload: {}, steps: [] },
  };
}

async function idsOf(batches: AsyncIterable<EventRecord[]>): Promise<number[]> {
  const ids: number[] = [];
  for await (const batch of batches) ids.push(...batch.map(({ event_id }) => event_id));
  return ids;
}

const frame = (record: EventRecord) => `id: ${record.event_id}\ndata: ${JSON.stringify(record)}\n\n`;

test("a broken stream resumes after the last event, and no event is yielded twice", async (t) => {
  const asked: unknown[] = [];
  const { follow } = await setup(t, {
    // The log lags behind, so that the stream alone can tell.
    events: (after) => LOG.slice(0, after),
    stream(request, response) {
      const after = Number(request.headers["last-event-id"]);
      asked.push(after);
      // It repeats the last one, as a server may that has two writers.
      const some = LOG.slice(Math.max(0, after - 1), after + 1);
      response.end(some.map(frame).join(""));
    },
  });
  assert.deepEqual(await idsOf(follow()), [1, 2, 3, 4]);
  assert.deepEqual(asked, [0, 1, 2, 3]);
});

test("where streams are refused the log is asked until the execution has ended", async (t) => {
  let calls = 0;
  const { follow } = await setup(t, {
    events() {
      calls += 1;
      return LOG.slice(0, calls);
    },
  });
  assert.deepEqual(await idsOf(follow()), [1, 2, 3, 4]);
});

test("a server without room for another stream is not asked for one again and again: its log is read, and that is said once", async (t) => {
  let calls = 0;
  const news: string[] = [];
  const what = "This server has 5 event streams open, the most that FLOW_EVENT_STREAMS allows";
  const { server, follow } = await setup(t, {
    refusal: { status: 429, body: { error: `${what}. Close one`, code: "RATE_LIMITED", request_id: "1" } },
    events() {
      calls += 1;
      return LOG.slice(0, calls);
    },
  });
  assert.deepEqual(await idsOf(follow(0, (text) => news.push(text))), [1, 2, 3, 4]);
  assert.deepEqual(news, [`${what}: its log is read every second instead`]);
  assert.equal(server.requests.filter(({ url }) => url.endsWith("/stream")).length, 1);
});

test("a stream that says nothing is given up for the log", async (t) => {
  let calls = 0;
  const { server, follow } = await setup(t, {
    stream: () => undefined,
    silence: 20,
    events() {
      calls += 1;
      return LOG.slice(0, calls);
    },
  });
  assert.deepEqual(await idsOf(follow()), [1, 2, 3, 4]);
  const streams = server.requests.filter(({ url }) => url.endsWith("/stream"));
  // On a busy machine the silence may be over before the request has come.
  assert.ok(streams.length <= 1, `and left alone then, not asked ${streams.length} times`);
});

test("what a cancellation closes stands behind it and is given with it", async (t) => {
  const log = logOf("playbook.initialized", "execution.cancelled", "command.cancelled", "step.failed");
  const { follow } = await setup(t, {
    events: () => log,
    // The server's stream ends with the event that ends the execution.
    stream: (_request, response) => response.end(`${log.slice(0, 2).map(frame).join("")}event: end\ndata: {}\n\n`),
  });
  const batches: number[][] = [];
  for await (const batch of follow()) batches.push(batch.map(({ event_id }) => event_id));
  assert.deepEqual(batches.at(-1)?.slice(-3), [2, 3, 4]);
});

test("the end is noticed from behind it, by the stream and by the log", async (t) => {
  const ended = await setup(t, { stream: (_request, response) => response.end("event: end\ndata: {}\n\n") });
  assert.deepEqual(await idsOf(ended.follow(4)), []);
  const logged = await setup(t, { status: "COMPLETED" });
  assert.deepEqual(await idsOf(logged.follow(4)), []);
});

test("an unreachable server is awaited, and reported once when it goes away and once when it is back", async (t) => {
  let calls = 0;
  const news: unknown[] = [];
  const { follow } = await setup(t, {
    events() {
      calls += 1;
      return calls === 1 ? LOG.slice(0, 1) : calls < 4 ? "away" : LOG;
    },
  });
  const following = follow(0, (text) => news.push(text === "The server is there again"));
  assert.deepEqual(await idsOf(following), [1, 2, 3, 4]);
  assert.deepEqual(news, [false, true]);
});

test("a server that stays away is given up, with its address", async () => {
  const target = { url: `http://127.0.0.1:${await closedPort()}`, origin: "a test" };
  const news: unknown[] = [];
  const { signal } = new AbortController();
  const following = followEvents(target, "7", { signal, ms: QUICK, onNotice: (text) => news.push(text) });
  await assert.rejects(idsOf(following), {
    code: "SERVER_UNREACHABLE",
    message: /Cannot reach the server at .*a test/,
  });
  assert.equal(news.length, 1, "told once");
  assert.match(String(news[0]), /^Cannot reach the server at \S+ \(a test\): .*ECONNREFUSED[^']*$/);
});

test("an unknown execution is an error at once", async (t) => {
  const server = await startHttpServer((_request, response) => {
    response
      .writeHead(404)
      .end(JSON.stringify({ error: "There is no execution 7", code: "NOT_FOUND", request_id: "1" }));
  });
  t.after(() => server.close());
  const { signal } = new AbortController();
  const following = followEvents({ url: server.origin, origin: "a test" }, "7", { signal });
  await assert.rejects(idsOf(following), { code: "NOT_FOUND", message: "There is no execution 7" });
});

test("a stream of something else is no reason to fail while the log is right", async (t) => {
  const { follow } = await setup(t, { stream: (_request, response) => response.end("data: {}\n\ndata: nonsense\n\n") });
  assert.deepEqual(await idsOf(follow()), [1, 2, 3, 4]);
});

test("stopping ends the wait, whatever it waits for", async (t) => {
  const begin = LOG.slice(0, 1);
  const open = await setup(t, {
    events: () => begin,
    stream: (_request, response) => void response.write(begin.map(frame).join("")),
  });
  const streaming = open.follow();
  await streaming.next();
  const next = streaming.next();
  open.stop();
  await assert.rejects(next, { code: "CANCELLED" });
  assert.ok(FOLLOW_MS.silence > 15_000, "longer than the server's own silence");
});
