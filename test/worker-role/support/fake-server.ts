import type { ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { type RecordedRequest, startHttpServer } from "../../support/servers/http-server.ts";

/** A batch of events as it arrived. */
export interface ReceivedBatch {
  key: string;
  worker: string;
  events: JsonObject[];
  claim?: { limit: number; wait_ms: number };
  attachments?: { event: number; ref: string; bytes: number }[];
  /** The JSON. */
  text: string;
  /** What follows it. */
  attached: string;
}

/** An answer of the script. */
export interface Scripted {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Ends the connection instead of answering. */
  cut?: true;
  /** The answer waits for it. */
  after?: Promise<void>;
}

/** A server as workers know it, scripted: real HTTP, no engine behind it. */
export interface FakeServer {
  url: string;
  port: number;
  /** Documents by catalog id. */
  documents: Map<string, string>;
  batches: ReceivedBatch[];
  claims: JsonObject[];
  beats: { name: string; running: { command_id: string; attempt: number }[]; draining?: boolean }[];
  registrations: JsonObject[];
  /** Paths of all calls, in order. */
  calls: string[];
  /** Answers in place of the usual one, by path; undefined gives the usual one. */
  script: (request: RecordedRequest) => Scripted | undefined;
  /** Commands for the next claim. */
  offer(...commands: JsonObject[]): void;
  /** All events of a command, in order of arrival. */
  eventsOf(commandId: string): string[];
  /** The first event of this type that arrives, or has arrived. */
  untilEvent(type: string): Promise<JsonObject>;
  /** Resolves with what `look` gives as soon as that is something; looked at after every call. */
  until<T>(look: () => T | undefined | false): Promise<T>;
  /** Stops the users of the server; called before it is closed, because a draining worker needs it. */
  users: (() => Promise<void>)[];
}

/** A playbook of one step `only` with these tasks. */
export function documentOf(tool: string, more = ""): string {
  return `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: fake, path: fake}\nworkflow:\n- step: only\n  tool: ${tool}\n${more}`;
}

/** A command for the step `only` as a claim gives it. */
export function commandOf(id: number, catalogId = "1", more: JsonObject = {}): JsonObject {
  return {
    command_id: String(id),
    execution_id: String(id + 1_000_000),
    catalog_id: catalogId,
    step: "only",
    step_run_id: `${id}-0`,
    step_started_at: 1_700_000_000_000,
    attempt: 1,
    lease_expires_at: "2026-01-01T00:00:00.000Z",
    tool: [],
    spec: {},
    context: { workload: {}, vars: {}, steps: {}, input: {} },
    ...more,
  };
}

/** Starts one; it is closed after the test. Catalog entry 1 is a `noop`. */
export async function startFakeServer(context: TestContext): Promise<FakeServer> {
  const ready: JsonObject[] = [];
  const waiting: { limit: number; answer: ServerResponse }[] = [];
  const looks = new Set<() => void>();
  const changed = () => {
    for (const look of looks) look();
  };
  const http = await startHttpServer((request, response) => {
    const path = new URL(request.url, "http://fake").pathname;
    fake.calls.push(`${request.method} ${path}`);
    record(fake, path, request);
    const scripted = fake.script(request);
    if (scripted !== undefined) void answerScripted(response, scripted);
    else answerUsual(fake, path, request, response, { ready, waiting });
    changed();
  });
  const fake: FakeServer = {
    url: http.origin,
    port: http.port,
    documents: new Map([["1", documentOf("{kind: noop}")]]),
    batches: [],
    claims: [],
    beats: [],
    registrations: [],
    calls: [],
    script: () => undefined,
    offer(...commands) {
      ready.push(...commands);
      const claim = waiting.shift();
      if (claim !== undefined) send(claim.answer, 200, { commands: ready.splice(0, claim.limit) });
    },
    eventsOf: (id) =>
      fake.batches.flatMap(({ events }) =>
        events.filter((event) => event["command_id"] === id).map((event) => String(event["event_type"])),
      ),
    untilEvent: (type) =>
      fake.until(() => fake.batches.flatMap(({ events }) => events).find((event) => event["event_type"] === type)),
    until: (look) =>
      new Promise((resolve) => {
        const see = () => {
          const found = look();
          if (found === undefined || found === false) return;
          looks.delete(see);
          resolve(found as Exclude<typeof found, false>);
        };
        looks.add(see);
        see();
      }),
    users: [],
  };
  context.after(async () => {
    for (const stop of fake.users) await stop();
    await http.close();
  });
  return fake;
}

function record(fake: FakeServer, path: string, { body, headers }: RecordedRequest): void {
  if (path === "/api/commands/claim") fake.claims.push(JSON.parse(body) as JsonObject);
  if (path === "/api/worker/pool/register") fake.registrations.push(JSON.parse(body) as JsonObject);
  if (path === "/api/worker/pool/heartbeat") fake.beats.push(JSON.parse(body) as FakeServer["beats"][number]);
  if (path !== "/api/events/batch") return;
  // The tests' results are ASCII.
  const end = Number(headers["x-flow-report-bytes"] ?? body.length);
  const text = body.slice(0, end);
  const batch = JSON.parse(text) as Omit<ReceivedBatch, "key" | "text" | "attached">;
  fake.batches.push({ ...batch, key: String(headers["idempotency-key"]), text, attached: body.slice(end) });
}

interface ClaimQueue {
  ready: JsonObject[];
  waiting: { limit: number; answer: ServerResponse }[];
}

function answerUsual(
  fake: FakeServer,
  path: string,
  request: RecordedRequest,
  response: ServerResponse,
  queue: ClaimQueue,
): void {
  const entry = /^\/api\/catalog\/entries\/(\d+)$/.exec(path)?.[1];
  const content = entry === undefined ? undefined : fake.documents.get(entry);
  if (path.startsWith("/api/worker/pool/")) {
    // A worker that drains is not kept waiting.
    if (fake.beats.at(-1)?.draining === true)
      for (const claim of queue.waiting.splice(0)) send(claim.answer, 200, { commands: [] });
    send(response, 200, { status: "ok", runtime_id: "1", cancel: [], lost: [] });
  } else if (path === "/api/commands/claim") {
    answerClaim(request, response, queue);
  } else if (path === "/api/events/batch") {
    const { limit = 0 } = fake.batches.at(-1)?.claim ?? {};
    send(response, 202, { status: "accepted", duplicate: false, commands: queue.ready.splice(0, limit) });
  } else if (content !== undefined) {
    send(response, 200, { catalog_id: entry, path: "fake", version: 1, kind: "playbook", content });
  } else {
    send(response, 404, { error: `There is no ${path}`, code: "NOT_FOUND", request_id: "1" });
  }
}

function answerClaim(request: RecordedRequest, response: ServerResponse, { ready, waiting }: ClaimQueue): void {
  const { limit } = JSON.parse(request.body) as { limit: number };
  if (ready.length > 0) {
    send(response, 200, { commands: ready.splice(0, limit) });
    return;
  }
  const entry = { limit, answer: response };
  waiting.push(entry);
  response.on("close", () => {
    if (waiting.includes(entry)) waiting.splice(waiting.indexOf(entry), 1);
  });
}

async function answerScripted(
  response: ServerResponse,
  { status, body, headers, cut, after }: Scripted,
): Promise<void> {
  await after;
  if (cut) response.destroy();
  else send(response, status, body ?? {}, headers);
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
