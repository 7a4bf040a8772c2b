import { noteMark, type StepMarks } from "../../../src/engine/rerun/step-marks.ts";
import type { RerunAnswer, RerunBody } from "../../../src/schema/api/steering.ts";
import { fromRecord } from "../../../src/schema/rules/event-record.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { isMarker } from "../../../src/services/orchestration/memory/load-execution.ts";
import type { MemoryStore } from "../../support/engine/memory-store.ts";
import type { Random } from "../random.ts";

/** A rerun that was begun. */
export interface MadeRerun {
  executionId: string;
  originalId: string;
  body: RerunBody;
  /** What was said before it was begun. */
  plan: RerunAnswer;
}

/** What asking for reruns needs. */
export interface RerunsParts {
  store: MemoryStore;
  /** Chance; undefined: every rerun that an execution may have is asked for, each once. */
  random: Random | undefined;
  sleep(ms: number): Promise<void>;
  ask(executionId: string, body: RerunBody, key?: string): Promise<RerunAnswer>;
  /** It has begun: what every execution is sent, and so on. */
  begun(executionId: string): void;
}

/** How often the operator looks whether an execution has ended. */
const LOOK_MS = 1_000;
/** Reruns of reruns: what the second one takes over is of the first one's original. */
const DEPTH_MAX = 3;

/** Reruns of an execution once it has ended, and of those reruns. They are added to `made` as they are begun. */
export function rerunsOf(parts: RerunsParts, made: MadeRerun[]): (executionId: string) => Promise<void> {
  const { store, random, sleep, ask, begun } = parts;
  const begin = async (originalId: string, body: RerunBody): Promise<string | undefined> => {
    const plan = await ask(originalId, { ...body, dry_run: true }).catch(noneFailed);
    if (plan === undefined) return undefined;
    const key = `rerun-${originalId}-${JSON.stringify(body)}`;
    const { execution_id: executionId = "" } = await ask(originalId, body, key);
    made.push({ executionId, originalId, body, plan });
    begun(executionId);
    return executionId;
  };
  const ended = async (executionId: string) => {
    while (store.executions.get(executionId)?.endedAt == null) await sleep(LOOK_MS);
  };
  const again = async (executionId: string, depth: number): Promise<void> => {
    await ended(executionId);
    const bodies = possible(store, executionId);
    if (random === undefined) {
      for (const body of bodies) {
        const id = await begin(executionId, body);
        if (id !== undefined) await ended(id);
      }
      return;
    }
    await sleep(random.between(0, 5_000));
    const body = { ...random.pick(bodies) };
    if (Array.isArray(body.from) && random.chance(0.2)) body.only = true;
    if (random.chance(0.2)) body.reuse_iterations = false;
    const id = await begin(executionId, body);
    if (id !== undefined && depth < DEPTH_MAX && random.chance(0.5)) await again(id, depth + 1);
  };
  return (executionId) => again(executionId, 1);
}

/** What `failed` means where nothing did. */
function noneFailed(error: unknown): undefined {
  if (error instanceof FlowError && error.code === "nothing_failed") return undefined;
  throw error;
}

/** From its start, from what failed, from each step that it came to; with what that step had called too, where it called. */
function possible(store: MemoryStore, executionId: string): RerunBody[] {
  const log = (store.events.get(executionId) ?? []).filter((record) => !isMarker(record));
  const marks: StepMarks = new Map();
  for (const record of log) noteMark(marks, fromRecord(record), record.event_id);
  const reached = [...marks].flatMap(([step, { end }]) => (end === "unreached" ? [] : [step]));
  const bodies: RerunBody[] = [{ from: "start" }, { from: "failed" }, ...reached.map((step) => ({ from: [step] }))];
  for (const { caller, step, executionId: child } of completedChildren(store, executionId)) {
    for (const from of ["start" as const, [step]]) bodies.push({ from, reuse_children: { [caller]: child } });
  }
  return bodies;
}

/** What an execution has called and has completed; `caller`: `step`, or `step[i]`. */
function completedChildren(store: MemoryStore, executionId: string) {
  const rows = [...store.executions.values()].filter(
    ({ parentExecutionId, status }) => parentExecutionId === executionId && status === "COMPLETED",
  );
  return rows.map((row) => ({ ...callerOf(store, row.executionId), executionId: row.executionId }));
}

/** Where an execution was called. */
export function callerOf(store: MemoryStore, executionId: string): { step: string; caller: string } {
  const [first] = (store.events.get(executionId) ?? []).map(fromRecord);
  const parent = first?.type === "playbook.initialized" ? first.parent : undefined;
  const { step = "", iter } = parent ?? {};
  return { step, caller: iter === undefined ? step : `${step}[${String(iter["_index"])}]` };
}
