import { createFileCredentials } from "../../../src/adapters/file-credentials.ts";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import { createLocalRuntime } from "../../../src/local/runtime.ts";
import { createSecretSource } from "../../../src/roles/server/secret-source.ts";
import { type EventRecord, toRecord } from "../../../src/schema/rules/event-record.ts";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.ts";
import { loadedResult, type Outcome, outcomeOf, shownSteps } from "./outcome.ts";
import type { Scenario } from "./scenario.ts";

/** What both runtimes are given beside the playbooks. */
export interface Surroundings {
  /** Where the documents are; a local run finds them by their catalog paths. */
  folder: string;
  credentialsFile: string;
  /** Readable as `env` in templates. */
  env: Readonly<Record<string, string>>;
}

/** Runs a scenario in this process, as `flow run --runtime local` does. */
export async function runLocally(scenario: Scenario, { folder, credentialsFile, env }: Surroundings): Promise<Outcome> {
  const logs = new Map<string, EventRecord[]>();
  let tools: ToolRegistry | undefined;
  const secretSource = createSecretSource({ allowPrivate: "all", now: systemClock.now });
  const runtime = createLocalRuntime({
    tools: (store) => {
      tools = createToolRegistry({ allowPrivate: "all", store });
      return tools;
    },
    credentials: createFileCredentials(credentialsFile, {}),
    secretSource,
    env: { ...env },
    observe({ executionId, path, parent }, events) {
      const log = logs.get(executionId) ?? [];
      logs.set(executionId, log);
      const place = { executionId, path, catalogId: path };
      for (const event of events) {
        const record = toRecord(event, { ...place, eventId: log.length + 1 });
        const caller = record.node_type === "playbook" ? parent?.execution_id : undefined;
        log.push(caller === undefined ? record : { ...record, parent_execution_id: caller });
      }
    },
  });
  try {
    const { path, workload: input = {}, target } = scenario;
    const playbook = await runtime.load(path, folder);
    const request = { input, ...(target !== undefined && { target }) };
    const state = await runtime.run(playbook, request, new AbortController().signal);
    const result = await loadedResult(state, runtime.results);
    // Executions whose result is not waited for are part of the outcome: this waits for them.
    await runtime.close();
    return outcomeOf([...logs.values()], result, shownSteps(state), scenario.order);
  } finally {
    await runtime.close();
    await tools?.close();
    await secretSource.close();
  }
}
