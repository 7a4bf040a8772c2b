import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { ExecutionState } from "../../engine/state/state.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { createFold, type EventFold } from "../progress/fold-events.ts";
import { callServer } from "../server/client.ts";
import type { ServerTarget } from "../server/target.ts";
import { followEvents, isEnd } from "./follow.ts";

/** Time between two looks for sub-playbooks that run. */
const LOOK_MS = 1_000;
/** Sub-playbooks watched at a time: a terminal shows no more. */
const CHILDREN_MAX = 8;
/** Longest wait for the events of an ended sub-playbook before its caller's next event is shown. */
const CHILD_MS = 5_000;

/** What to watch, and the callbacks. */
export interface WatchOptions {
  target: ServerTarget;
  executionId: string;
  /** May it call sub-playbooks? They are looked for then. */
  hasChildren: boolean;
  /** Called with what was folded into the state of an execution: the watched one, or a sub-playbook. */
  observe(state: ExecutionState, events: readonly FlowEvent[]): void;
  /** The log of the watched execution as it comes. */
  onRecords(records: readonly EventRecord[]): void;
  /** See `FollowOptions`. */
  onNotice(text: string): void;
  signal: AbortSignal;
}

/**
 * Watches an execution on a server until it has ended, as the local runtime is watched: the same events folded into the same
 * state. Sub-playbooks are separate executions there; running and just ended ones are watched too, unless there are too many.
 * Throws what `followEvents` throws.
 */
export async function watchExecution(options: WatchOptions): Promise<void> {
  const { target, executionId, observe, onRecords, onNotice, hasChildren } = options;
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  // Every sub-playbook that is watched listens to it. Node takes eleven for a leak and would print a warning.
  setMaxListeners(0, signal);
  const children = createChildren(target, observe, signal);
  const looking = hasChildren ? children.lookFor(executionId) : undefined;
  try {
    const fold = createFold();
    for await (const records of followEvents(target, executionId, { signal: options.signal, onNotice })) {
      onRecords(records);
      await foldRecords(records, fold, observe, children.catchUp);
    }
  } finally {
    over.abort();
    await looking;
  }
}

/** Folds records one after another. Before the end of a call it folds the sub-playbook's events. */
async function foldRecords(
  records: readonly EventRecord[],
  fold: EventFold,
  observe: WatchOptions["observe"],
  catchUp: (id: string) => Promise<void>,
): Promise<void> {
  for (const [index, record] of records.entries()) {
    const child = endedChild(record);
    if (child !== undefined) await catchUp(child);
    // A cancellation and the events that close what it leaves open are one write: show them as one change.
    const isLast = isEnd(record);
    const events = (isLast ? records.slice(index) : [record]).flatMap((one) => fold.take(one) ?? []);
    if (events.length > 0) observe(fold.state, events);
    if (isLast) return;
  }
}

/** The sub-playbook of a call that has ended: all of those outside of loops, and those that made their step fail. */
function endedChild(record: EventRecord): string | undefined {
  const { event_type, error, meta, iteration } = record as Record<string, unknown>;
  if (event_type === "call.done" && iteration === undefined) return idIn(meta, "child_execution_id");
  if (event_type !== "step.failed" || !isJsonObject(error) || error["kind"] !== "sub_playbook") return undefined;
  return idIn(error["details"], "execution_id");
}

/** Results and errors can hold anything under any name; an id becomes a part of an address. */
function idIn(value: unknown, key: string): string | undefined {
  const id = isJsonObject(value) ? own(value, key) : undefined;
  return typeof id === "string" && /^[1-9]\d{0,15}$/.test(id) ? id : undefined;
}

interface Children {
  /** Resolves when the sub-playbook's events were observed, or after a time limit. Never throws. */
  catchUp(id: string): Promise<void>;
  /** Looks for sub-playbooks that run below an execution, until the signal is aborted. Never throws. */
  lookFor(rootId: string): Promise<void>;
}

/** Sub-playbooks are watched only for display: errors with them are ignored. */
function createChildren(target: ServerTarget, observe: WatchOptions["observe"], signal: AbortSignal): Children {
  const watched = new Map<string, Promise<void>>();
  const running = new Set<string>();

  const follow = async (id: string) => {
    const fold = createFold();
    running.add(id);
    try {
      for await (const records of followEvents(target, id, { signal }))
        await foldRecords(records, fold, observe, catchUp);
    } catch {
      // Its last known state stays on display.
    } finally {
      running.delete(id);
    }
  };
  const watch = (id: string) => {
    const known = watched.get(id) ?? follow(id);
    watched.set(id, known);
    return known;
  };
  const catchUp = (id: string) => Promise.race([watch(id), pause(CHILD_MS, signal)]);

  const look = async (parentId: string) => {
    const query = { parent_execution_id: parentId, status: "RUNNING,PAUSED", limit: CHILDREN_MAX };
    const { executions } = await callServer(target, EXECUTION_ROUTES.list, { query, signal });
    for (const { execution_id } of executions) if (running.size < CHILDREN_MAX) void watch(execution_id);
  };
  return {
    catchUp,
    async lookFor(rootId) {
      while (!signal.aborted) {
        await pause(LOOK_MS, signal);
        for (const id of [rootId, ...running]) if (!signal.aborted) await look(id).catch(() => undefined);
      }
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return delay(ms, undefined, { signal }).catch(() => undefined);
}
