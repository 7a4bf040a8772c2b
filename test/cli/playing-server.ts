import { EventEmitter, once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { createFileCredentials } from "../../src/adapters/file-credentials.ts";
import { type ExecutionState, isTerminal } from "../../src/engine/state.ts";
import { loadPlaybook } from "../../src/language/load.ts";
import { createLocalRuntime } from "../../src/local/runtime.ts";
import { FlowError } from "../../src/schema/errors.ts";
import { type EventRecord, toRecord } from "../../src/schema/event-record.ts";
import type { JsonObject } from "../../src/schema/json.ts";
import { createToolRegistry } from "../../src/tools/registry.ts";
import { type RecordedRequest, startHttpServer, type TestHttpServer } from "../support/http-server.ts";

/** What may go wrong with a {@link PlayingServer}, switched while it runs. */
export interface Faults {
  /** Streams: as they should be, refused, or open without a word. */
  streams: "open" | "refused" | "silent";
  /** Streams are cut off after so many events. */
  streamEvents: number;
  /** Every connection is cut off. */
  away: boolean;
  /** Calls to cancel are answered with this status. */
  cancelStatus: number;
}

/** A server of ours as the command line sees it; it runs playbooks in its own process. */
export interface PlayingServer extends TestHttpServer {
  faults: Faults;
  /** The log of every execution, in the order of their starts. */
  logs: Map<string, EventRecord[]>;
  /** Resolves when an event of this type was logged, now or before. */
  untilEvent(type: string): Promise<void>;
}

interface Entry {
  path: string;
  version: number;
  catalog_id: string;
  content: string;
  kind: string;
}

/** Starts one; it ends with the test. */
export async function startPlayingServer(t: TestContext): Promise<PlayingServer> {
  const folder = await mkdtemp(join(tmpdir(), "flow-playing-"));
  const entries: Entry[] = [];
  const logs = new Map<string, EventRecord[]>();
  const states = new Map<string, ExecutionState>();
  const stops = new Map<string, AbortController>();
  const moved = new EventEmitter().setMaxListeners(0);
  const faults: Faults = { streams: "open", streamEvents: Number.POSITIVE_INFINITY, away: false, cancelStatus: 200 };
  let eventId = 100;
  const tools = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.reject(new Error("none")) } });
  const runtime = createLocalRuntime({
    tools: () => tools,
    credentials: createFileCredentials(undefined, {}),
    observe(state, events) {
      states.set(state.executionId, state);
      const log = logs.get(state.executionId) ?? [];
      logs.set(state.executionId, log);
      const place = { executionId: state.executionId, catalogId: "1", path: state.path };
      for (const event of events) {
        eventId += 1;
        log.push(toRecord(event, { ...place, eventId }));
      }
      moved.emit("moved");
    },
  });

  const execute = async (body: JsonObject) => {
    const entry = entries.find(({ catalog_id }) => catalog_id === body["catalog_id"]);
    if (entry === undefined) throw new FlowError("NOT_FOUND", "Executable catalog entry not found");
    const playbook = await runtime.load(fileOf(entry), folder);
    const known = new Set(logs.keys());
    const stop = new AbortController();
    const target = typeof body["target"] === "string" ? { target: body["target"] } : {};
    void runtime.run(playbook, { input: body["workload"] as JsonObject, ...target }, stop.signal);
    const fresh = () => [...logs.keys()].find((id) => !known.has(id));
    while (fresh() === undefined) await once(moved, "moved");
    const execution_id = fresh() ?? "";
    stops.set(execution_id, stop);
    return { execution_id, status: "RUNNING", path: entry.path, version: entry.version, catalog_id: entry.catalog_id };
  };
  const fileOf = ({ catalog_id }: Entry) => `${catalog_id}.yaml`;

  const register = async ({ content, if_changed }: JsonObject) => {
    const { playbook } = loadPlaybook(String(content), "document");
    const path = playbook?.path ?? "";
    const newest = entries.findLast((entry) => entry.path === path);
    const isSame = if_changed === true && newest?.content === content;
    const version = (newest?.version ?? 0) + 1;
    const entry =
      isSame && newest !== undefined
        ? newest
        : { path, version, catalog_id: String(entries.length + 1), content: String(content), kind: "playbook" };
    if (!isSame) entries.push(entry);
    await writeFile(join(folder, fileOf(entry)), entry.content);
    const answer = { status: "success", path, kind: "playbook", catalog_id: entry.catalog_id, version: entry.version };
    return { ...answer, warnings: [], ...(isSame && { unchanged: true }) };
  };

  const resource = (path: string, version: string | null) => {
    const found = entries.findLast(
      (entry) => entry.path === path && (version === null || String(entry.version) === version),
    );
    if (found === undefined) throw new FlowError("NOT_FOUND", `There is no catalog entry '${path}'`);
    return { ...found, created_at: new Date(0).toISOString(), metadata: {}, payload: {} };
  };

  const logOf = (id: string): EventRecord[] => {
    const log = logs.get(id);
    if (log === undefined) throw new FlowError("NOT_FOUND", `There is no execution ${id}`);
    return log;
  };

  const stream = async (id: string, last: number, response: ServerResponse) => {
    if (faults.streams === "refused") throw new FlowError("NOT_FOUND", "There is no such route");
    logOf(id);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    if (faults.streams === "silent") return;
    response.write(": open\n\n");
    let sent = 0;
    for (let after = last; !response.destroyed; ) {
      const next = logOf(id).find((record) => record.event_id > after);
      if (next === undefined) {
        if (isTerminal(states.get(id)?.status ?? "PENDING")) break;
        await once(moved, "moved");
        continue;
      }
      if (sent >= faults.streamEvents) {
        response.destroy();
        return;
      }
      sent += 1;
      after = next.event_id;
      response.write(`id: ${after}\nevent: event\ndata: ${JSON.stringify(next)}\n\n`);
    }
    response.end("event: end\ndata: {}\n\n");
  };

  const answer = async (request: RecordedRequest, response: ServerResponse): Promise<unknown> => {
    const { pathname, searchParams: query } = new URL(request.url, "http://h");
    const body = request.body === "" ? {} : (JSON.parse(request.body) as JsonObject);
    const [, id = "", action] = /^\/api\/executions\/(\d+)(?:\/(\w+))?$/.exec(pathname) ?? [];
    if (pathname === "/api/health") return { status: "ok" };
    if (pathname === "/api/catalog/register") return await register(body);
    if (pathname.startsWith("/api/catalog/resource/")) {
      return resource(decodeURIComponent(pathname.slice("/api/catalog/resource/".length)), query.get("version"));
    }
    if (pathname === "/api/execute") return await execute(body);
    if (pathname === "/api/results/resolve") return await runtime.results.load(query.get("ref") ?? "");
    if (pathname === "/api/executions") {
      const wanted = (state: ExecutionState) =>
        (query.get("status") ?? state.status) === state.status &&
        (query.get("path") ?? state.path) === state.path &&
        (query.get("parent_execution_id") ?? state.parent?.execution_id) === state.parent?.execution_id;
      return { executions: [...states.values()].filter(wanted).reverse().map(itemOf), next_cursor: null };
    }
    if (action === "events") {
      const after = Number(query.get("after") ?? 0);
      const type = query.get("event_type");
      const all = logOf(id).filter((one) => one.event_id > after && (type === null || one.event_type === type));
      return { events: all.slice(0, Number(query.get("limit") ?? 100)), next_cursor: null };
    }
    if (action === "stream") return await stream(id, Number(request.headers["last-event-id"] ?? 0), response);
    const state = states.get(logOf(id)[0]?.execution_id ?? "");
    if (state === undefined) throw new FlowError("NOT_FOUND", `There is no execution ${id}`);
    if (action === "cancel") {
      if (faults.cancelStatus !== 200) throw new FlowError("UNAVAILABLE", "The database is away");
      stops.get(id)?.abort(new FlowError("CANCELLED", String(body["reason"] ?? "cancelled")));
      while (!isTerminal(state.status)) await once(moved, "moved");
      return { execution_id: id, status: state.status, children_cancelled: 0 };
    }
    return {
      ...itemOf(state),
      result: null,
      workload: state.workload,
      steps: stepsOf(state),
      commands: commandsOf(state),
    };
  };

  const server = await startHttpServer((request, response) => {
    if (faults.away) {
      response.destroy();
      return;
    }
    answer(request, response).then(
      (body) => {
        if (response.headersSent) return;
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
      },
      (error: unknown) => {
        const code = error instanceof FlowError ? error.code : "INTERNAL";
        const status = code === "NOT_FOUND" ? 404 : code === "UNAVAILABLE" ? 503 : 500;
        const said = JSON.stringify({ error: String((error as Error).message), code, request_id: "7" });
        response.writeHead(status, { "content-type": "application/json" }).end(said);
      },
    );
  });
  t.after(async () => {
    await server.close();
    for (const stop of stops.values()) stop.abort();
    await runtime.close();
    await tools.close();
    await rm(folder, { recursive: true, force: true });
  });
  return Object.assign(server, {
    faults,
    logs,
    async untilEvent(type: string) {
      const isThere = () => [...logs.values()].flat().some(({ event_type }) => event_type === type);
      while (!isThere()) await once(moved, "moved");
    },
  });
}

function itemOf(state: ExecutionState): JsonObject {
  const { executionId, path, status, startedAt, endedAt, error, parent } = state;
  return {
    ...{
      execution_id: executionId,
      catalog_id: "1",
      path,
      version: 1,
      status,
      progress: status === "RUNNING" ? 50 : 100,
    },
    parent_execution_id: parent?.execution_id ?? null,
    ...{ started_at: isoTime(startedAt), ended_at: endedAt === null ? null : isoTime(endedAt) },
    ...{ duration_ms: (endedAt ?? Date.now()) - startedAt, result: null, error: error as JsonObject | null },
  };
}

function stepsOf(state: ExecutionState): JsonObject[] {
  return Object.entries(state.steps).map(([name, step]) => ({
    ...{ name, status: step.status, attempts: step.attempts, runs: step.runs },
    started_at: step.startedAt === null ? null : isoTime(step.startedAt),
    ended_at: step.endedAt === null ? null : isoTime(step.endedAt),
    duration_ms: step.startedAt === null || step.endedAt === null ? null : step.endedAt - step.startedAt,
    ...(step.loop !== null && { loop: { ...step.loop } }),
    ...(step.error !== null && { error: step.error as JsonObject }),
  }));
}

function commandsOf(state: ExecutionState): JsonObject[] {
  return Object.entries(state.commands).map(([command_id, { step, attempt, worker, startedAt }]) => ({
    ...{ command_id, step, attempt, worker, claimed_at: startedAt === null ? null : isoTime(startedAt) },
  }));
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}
