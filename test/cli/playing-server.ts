import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type ExecutionState, isTerminal } from "../../src/engine/state/state.ts";
import type { EventRecord } from "../../src/schema/rules/event-record.ts";
import { ERROR_STATUS, FlowError } from "../../src/schema/words/errors.ts";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { type RecordedRequest, startHttpServer, type TestHttpServer } from "../support/servers/http-server.ts";
import { createPlayedCatalog, type PlayedCatalog } from "./played-catalog.ts";
import { createPlayedExecutions, detailOf, itemOf, type PlayedExecutions } from "./played-executions.ts";

/** What may go wrong with a {@link PlayingServer}, switched while it runs. */
export interface Faults {
  /** Streams: as they should be, or refused. */
  streams: "open" | "refused";
  /** Streams are cut off after so many events. */
  streamEvents: number;
  /** Every connection is cut off. */
  away: boolean;
  /** Calls to cancel are answered with this status. */
  cancelStatus: 200 | 503;
}

/** A server of ours as the command line sees it; it runs playbooks in its own process. */
export interface PlayingServer extends TestHttpServer {
  faults: Faults;
  /** The log of every execution, in the order of their starts. */
  logs: Map<string, EventRecord[]>;
  /** Resolves when an event of this type was logged, now or before. */
  untilEvent(type: string): Promise<void>;
}

interface Parts {
  catalog: PlayedCatalog;
  executions: PlayedExecutions;
  faults: Faults;
}

/** Starts one; it ends with the test. */
export async function startPlayingServer(t: TestContext): Promise<PlayingServer> {
  const folder = await mkdtemp(join(tmpdir(), "flow-playing-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const faults: Faults = { streams: "open", streamEvents: Number.POSITIVE_INFINITY, away: false, cancelStatus: 200 };
  const executions = createPlayedExecutions(t, folder);
  const parts = { catalog: createPlayedCatalog(folder), executions, faults };
  const server = await startHttpServer((request, response) => {
    if (faults.away) response.destroy();
    else void respond(parts, request, response);
  });
  t.after(() => server.close());
  return Object.assign(server, {
    faults,
    logs: executions.logs,
    async untilEvent(type: string) {
      const isThere = () => [...executions.logs.values()].flat().some(({ event_type }) => event_type === type);
      while (!isThere()) await executions.moved();
    },
  });
}

async function respond(parts: Parts, request: RecordedRequest, response: ServerResponse): Promise<void> {
  const send = (status: number, body: unknown) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  try {
    const { pathname } = new URL(request.url, "http://h");
    const [, id, action] = /^\/api\/executions\/(\d+)(?:\/(\w+))?$/.exec(pathname) ?? [];
    if (id !== undefined && action === "stream") await stream(parts, id, request, response);
    else if (id !== undefined) send(200, await aboutExecution(parts, id, action, request));
    else send(200, await answer(parts, pathname, request));
  } catch (error) {
    const { code, message } = error instanceof FlowError ? error : new FlowError("INTERNAL", String(error));
    send(ERROR_STATUS[code], { error: message, code, request_id: "7" });
  }
}

async function answer({ catalog, executions }: Parts, pathname: string, request: RecordedRequest): Promise<unknown> {
  const query = queryOf(request);
  const resource = /^\/api\/catalog\/resource\/(.+)$/.exec(pathname)?.[1];
  if (resource !== undefined) return catalog.resource(decodeURIComponent(resource), query.get("version"));
  switch (pathname) {
    case "/api/health":
      return { status: "ok" };
    case "/api/catalog/register":
      return await catalog.register(bodyOf(request));
    case "/api/execute": {
      const body = bodyOf(request);
      const entry = catalog.executable(String(body["catalog_id"]));
      const { path, version, catalog_id } = entry;
      return { execution_id: await executions.start(entry, body), status: "RUNNING", path, version, catalog_id };
    }
    case "/api/results/resolve":
      return await executions.result(query.get("ref") ?? "");
    case "/api/executions": {
      const isWanted = (state: ExecutionState) =>
        (query.get("status") ?? state.status) === state.status &&
        (query.get("path") ?? state.path) === state.path &&
        (query.get("parent_execution_id") ?? state.parent?.execution_id) === state.parent?.execution_id;
      const found = [...executions.states.values()].filter(isWanted);
      return { executions: found.reverse().map(itemOf), next_cursor: null };
    }
    default:
      throw new FlowError("NOT_FOUND", `There is no ${pathname}`);
  }
}

async function aboutExecution(
  { executions, faults }: Parts,
  id: string,
  action: string | undefined,
  request: RecordedRequest,
): Promise<unknown> {
  const log = executions.log(id);
  if (action === "events") {
    const query = queryOf(request);
    const type = query.get("event_type");
    const after = Number(query.get("after") ?? 0);
    const events = log.filter((one) => one.event_id > after && (type === null || one.event_type === type));
    return { events: events.slice(0, Number(query.get("limit") ?? 100)), next_cursor: null };
  }
  if (action === "cancel") {
    if (faults.cancelStatus !== 200) throw new FlowError("UNAVAILABLE", "The database is away");
    const status = await executions.cancel(id, String(bodyOf(request)["reason"] ?? "cancelled"));
    return { execution_id: id, status, children_cancelled: 0 };
  }
  const state = executions.states.get(id);
  if (state === undefined) throw new FlowError("NOT_FOUND", `There is no execution ${id}`);
  return detailOf(state);
}

async function stream(
  { executions, faults }: Parts,
  id: string,
  request: RecordedRequest,
  response: ServerResponse,
): Promise<void> {
  if (faults.streams === "refused") throw new FlowError("NOT_FOUND", "There is no such route");
  const log = executions.log(id);
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("retry: 1000\n\n");
  let after = Number(request.headers["last-event-id"] ?? 0);
  for (let sent = 0; !response.destroyed; ) {
    const next = log.find((record) => record.event_id > after);
    if (next === undefined) {
      if (isTerminal(executions.states.get(id)?.status ?? "PENDING")) break;
      await executions.moved();
      continue;
    }
    if (sent >= faults.streamEvents) {
      response.destroy();
      return;
    }
    sent += 1;
    after = next.event_id;
    response.write(`id: ${after}\ndata: ${JSON.stringify(next)}\n\n`);
  }
  response.end("event: end\ndata: {}\n\n");
}

function queryOf({ url }: RecordedRequest): URLSearchParams {
  return new URL(url, "http://h").searchParams;
}

function bodyOf({ body }: RecordedRequest): JsonObject {
  return body === "" ? {} : (JSON.parse(body) as JsonObject);
}
