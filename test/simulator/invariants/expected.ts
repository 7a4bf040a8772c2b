import { resultOf } from "../../../src/engine/state/results.ts";
import type { ExecutionState } from "../../../src/engine/state/state.ts";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { ResultView } from "../../../src/language/views/result-view.ts";
import { type LocalDeps, runExecution } from "../../../src/local/execution.ts";
import type { ChildRunner } from "../../../src/ports/children.ts";
import { type EventRecord, toRecord } from "../../../src/schema/rules/event-record.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import type { TaskError } from "../../../src/schema/words/outcome.ts";
import { createSteppedClock } from "../../../src/testing/stepped-clock.ts";
import { sayingOf } from "../callers/people.ts";
import { openLedger } from "../ledger.ts";
import { idOfPlaybook, programOf, type Simulated } from "../playbooks.ts";
import { seededRandom } from "../random.ts";
import { scriptedTool } from "../tools.ts";

/** What a run came to, as far as it does not depend on which worker was how fast. */
export function outcomeOf(state: ExecutionState, payloads: ReadonlyMap<string, Json>, isRacy: boolean): Json {
  const references = { get: (ref: string) => payloads.get(ref) };
  const result = resultOf(state);
  const steps = Object.entries(state.steps).map(([name, { status, runs, loop, error }]): [string, Json] => [
    name,
    { status, runs, loop: loop as unknown as Json, error: messageOf(error) },
  ]);
  return JSON.parse(
    JSON.stringify({
      status: state.status,
      error: messageOf(state.error),
      result: result === null ? null : toPlainJson(new ResultView(result, references)),
      vars: state.vars,
      steps: isRacy ? null : Object.fromEntries(steps.sort(([left], [right]) => (left < right ? -1 : 1))),
    }),
  ) as Json;
}

/** Without the id of an execution that was called. */
function messageOf(error: TaskError | null): string | null {
  return error?.message.replace(/the playbook '.*' \(execution \d+\)/, "the playbook") ?? null;
}

const outcomes = new Map<string, Promise<Json>>();

/** What the playbook comes to in the local runtime, where nothing goes wrong. */
export function expectedOutcome(playbook: Simulated): Promise<Json> {
  const outcome = outcomes.get(playbook.name) ?? runLocally(playbook);
  outcomes.set(playbook.name, outcome);
  return outcome;
}

async function runLocally(playbook: Simulated): Promise<Json> {
  const { state, payloads } = await localRun(playbook);
  return outcomeOf(state, payloads, playbook.isRacy);
}

/** A run of the local runtime, in virtual time, with the tools of the simulation: its end, its stored results, and its own log. */
export async function localRun({
  path,
  rows,
  signals,
  hasPeople,
}: Simulated): Promise<{ state: ExecutionState; payloads: Map<string, Json>; log: EventRecord[] }> {
  const log: EventRecord[] = [];
  const clock = createSteppedClock(Date.UTC(2026, 0, 1));
  const payloads = new Map<string, Json>();
  const script = {
    random: seededRandom(1),
    ledger: openLedger(),
    rows: { all: rows, left: new Map(), given: new Map() },
  };
  const tool = scriptedTool(script, { clock }, () => ({ attempt: 1, limit: Number.POSITIVE_INFINITY }));
  let ids = 5_000_000_000;
  const newId = () => {
    ids += 1;
    return String(ids);
  };
  const run = (what: string, input: Record<string, Json>) => {
    const catalogId = idOfPlaybook(what);
    return runExecution(deps, programOf(catalogId), { executionId: newId(), catalogId, input }, NEVER_ABORTED);
  };
  const children: ChildRunner = {
    async run({ path: what = "", input }) {
      const state = await run(what, input);
      const status = state.status === "COMPLETED" ? "COMPLETED" : "FAILED";
      return { executionId: state.executionId, path: what, status, result: resultOf(state), error: state.error };
    },
  };
  const deps: LocalDeps = {
    worker: "local",
    tools: { get: () => Promise.resolve(tool) },
    credentials: { find: () => Promise.resolve(undefined) },
    sealers: undefined,
    children,
    results: {
      kind: "memory",
      load: (ref) => Promise.resolve(payloads.get(ref) ?? null),
      save: (ref, text) => {
        const json = typeof text === "string" ? text : Buffer.from(text).toString();
        payloads.set(ref, JSON.parse(json) as Json);
        return Promise.resolve({ sha256: "", bytes: json.length });
      },
    },
    clock,
    random: script.random.next,
    env: {},
    log: () => undefined,
    newId,
    capacity: 4,
    answer: async ({ decided, request: { title } }) =>
      hasPeople ? { decision: sayingOf(title), by: `person ${decided}`, afterMs: 1_000 } : undefined,
    signals: signals.map((signal, index) => ({ signal, afterMs: index * 100 })),
    observe({ executionId, path: name }, events) {
      // Those that it calls come later.
      if (executionId !== (log[0]?.execution_id ?? executionId)) return;
      for (const event of events) {
        log.push(toRecord(event, { executionId, path: name, catalogId: path, eventId: log.length + 1 }));
      }
    },
  };
  const state = await clock.runUntil(run(path, {}));
  return { state, payloads, log };
}

const NEVER_ABORTED = new AbortController().signal;
