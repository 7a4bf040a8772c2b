import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import type { ResultStore } from "../../../src/ports/result-store.ts";
import type { EventRecord } from "../../../src/schema/rules/event-record.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { startServe } from "../../support/service/serve.ts";
import type { Surroundings } from "./local-run.ts";
import { loadedResult, type Outcome, outcomeOf, stateOf, stepsWithResult } from "./outcome.ts";
import type { Scenario } from "./scenario.ts";

/** A server and a worker, each a process of its own, over a real PostgreSQL. */
export interface RunningService {
  register(content: string): Promise<void>;
  /** Runs a scenario over HTTP, as `flow run --runtime server` does. */
  run(scenario: Scenario): Promise<Outcome>;
}

/** Starts the service; it stops with the test. */
export async function startParityService(
  context: TestContext,
  { credentialsFile, env }: Surroundings,
): Promise<RunningService> {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(context, {});
  const environment = {
    ...env,
    ...ownDatabase(databaseUrl),
    FLOW_WORKER_TOOLS: "all",
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    // Its code runs in a sandbox, that of a local run does not.
    FLOW_TASK_READABLE: packagePath("playbooks"),
    FLOW_CREDENTIALS_FILE: credentialsFile,
    // As in a local run, which gives its credentials to the playbook that it runs.
    FLOW_CREDENTIALS_DEFAULT: "open",
    FLOW_TEMPLATE_ENV: Object.keys(env).join(","),
  };
  const { url } = await startServe(context, folder, environment, ["--role", "all"]);
  const results: ResultStore = {
    load: (ref) => call<Json>(url, `/api/results/resolve?ref=${encodeURIComponent(ref)}`),
  };
  /** Agents are run only when they are called so. */
  const kinds = new Map<string, string>();
  return {
    async register(content) {
      const { path, kind } = await call<{ path: string; kind: string }>(url, "/api/catalog/register", { content });
      kinds.set(path, kind);
    },
    async run({ path, workload = {}, target, order }) {
      const kind = kinds.get(path) ?? "playbook";
      const body = { path, workload, resource_kind: kind, ...(target !== undefined && { target }) };
      const { execution_id: id } = await call<{ execution_id: string }>(url, "/api/execute", body);
      const family = await familyOf(url, id);
      const logs = await Promise.all(family.map((member) => logOf(url, member)));
      const state = stateOf(logs[0] ?? []);
      const shown = async (step: string): Promise<[string, Json]> => {
        const query = `step=${encodeURIComponent(step)}`;
        return [step, (await call<{ result: Json }>(url, `/api/executions/${id}/result?${query}`)).result];
      };
      const steps = await Promise.all(stepsWithResult(state).map(shown));
      return outcomeOf(logs, await loadedResult(state, results), steps, order);
    },
  };
}

async function call<T>(url: string, path: string, body?: Json): Promise<T> {
  const json = { "content-type": "application/json" };
  const init = body === undefined ? {} : { method: "POST", headers: json, body: JSON.stringify(body) };
  const response = await fetch(`${url}${path}`, init);
  const text = await response.text();
  assert.ok(response.ok, `${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** The execution and those that it called, in the order of their start, all of them ended. */
async function familyOf(url: string, id: string): Promise<string[]> {
  const { status } = await call<{ status: string }>(url, `/api/executions/${id}/result?wait_ms=30000`);
  assert.match(status, /COMPLETED|FAILED|CANCELLED/, `Execution ${id} is still ${status}`);
  const { executions } = await call<{ executions: { execution_id: string }[] }>(
    url,
    `/api/executions?parent_execution_id=${id}&limit=500`,
  );
  const families = await Promise.all(executions.map(({ execution_id }) => familyOf(url, execution_id)));
  return [id, ...families.flat().sort((left, right) => Number(left) - Number(right))];
}

const PAGE = 500;

async function logOf(url: string, id: string): Promise<EventRecord[]> {
  const log: EventRecord[] = [];
  for (let after = 0; ; after = log.at(-1)?.event_id ?? after) {
    const path = `/api/executions/${id}/events?after=${after}&limit=${PAGE}`;
    const { events } = await call<{ events: EventRecord[] }>(url, path);
    for (const event of events) log.push(present(event));
    if (events.length < PAGE) return log;
  }
}

/** What does not apply may be null in an answer, and is absent in a record. */
function present(event: EventRecord): EventRecord {
  return Object.fromEntries(Object.entries(event).filter(([, value]) => value !== null)) as EventRecord;
}
