import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useSyncExternalStore } from "react";
import { executionDetail } from "../../api/queries.ts";
import type { Execution } from "../../api/types.ts";
import { logSource } from "../events/use-event-log.ts";
import { graphOf } from "./arcs.ts";
import { clippedTo } from "./clipped.ts";
import { runDocument } from "./run-document.ts";
import { stepTracesOf } from "./step-traces.ts";
import { createTraceReader, type TraceReader } from "./trace-reader.ts";
import type { TracedExecution } from "./trace-row.ts";

/** Called executions are read again so often while they are open, milliseconds: they have no stream of their own here. */
const LOOK_MS = 2_000;

/** A moment of the past: the event after which, and when that was. */
export interface Moment {
  event: number;
  at: number;
}

/** An execution, and those that it called and that are unfolded, with what their logs tell. */
export function useTraced(execution: Execution, calls: readonly string[], moment: Moment | undefined) {
  const { readers, version } = useReaders(execution, calls);
  const called = useCalled(calls);
  // One text of all that is read: a list of hooks' values must not change its length.
  const read = called
    .map(({ execution_id, last_event_id, status }) => `${execution_id}@${last_event_id}${status}`)
    .join();
  useEffect(() => {
    for (const { execution_id, last_event_id } of called)
      if (last_event_id !== undefined) readers.get(execution_id)?.grow();
  });
  const kinds = useKinds([execution, ...called]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that the readers have read on
  return useMemo(() => {
    const traced = (one: Execution): TracedExecution => {
      const reader = readers.get(one.execution_id);
      const isPast = moment !== undefined && reader !== undefined;
      return {
        execution: moment === undefined || one === execution ? one : clippedTo(one, moment.at),
        traces: isPast ? stepTracesOf(reader.events(), moment.event) : (reader?.traces() ?? new Map()),
        isRead: reader?.isRead() ?? false,
        kinds: kinds.get(one.execution_id) ?? new Map(),
      };
    };
    return {
      root: traced(execution),
      called: new Map(called.map((one) => [one.execution_id, traced(one)])),
      readers,
    };
  }, [version, readers, kinds, moment, execution, read]);
}

/** Executions that were called, as they are now: those of these that were read. */
export function useCalled(ids: readonly string[]): Execution[] {
  const details = useQueries({ queries: ids.map(calledDetail) });
  return details.map(({ data }) => data).filter((data) => data !== undefined);
}

/** Reads a called execution, again and again while it is open. */
export function calledDetail(id: string) {
  return {
    ...executionDetail(id),
    refetchInterval: ({ state }: { state: { data?: Execution | undefined } }) =>
      state.data?.ended_at === null ? LOOK_MS : (false as const),
  };
}

/** A reader of the log of each of them, and a text that changes with what they have read. */
export function useReaders(execution: Execution, calls: readonly string[]) {
  const ids = [execution.execution_id, ...calls].join(" ");
  const readers = useMemo(() => new Map(ids.split(" ").map((id) => [id, readerOf(id)])), [ids]);
  useEffect(() => {
    const ends = [...readers.values()].map((reader) => reader.open());
    return () => {
      for (const end of ends) end();
    };
  }, [readers]);
  const lastEventId = execution.last_event_id;
  useEffect(() => {
    if (lastEventId !== undefined) readers.get(execution.execution_id)?.grow();
  }, [readers, execution.execution_id, lastEventId]);
  const subscribe = useCallback(
    (listener: () => void) => {
      const ends = [...readers.values()].map((reader) => reader.subscribe(listener));
      return () => {
        for (const end of ends) end();
      };
    },
    [readers],
  );
  const version = useSyncExternalStore(subscribe, () => [...readers.values()].map((reader) => reader.version()).join());
  return { readers, version };
}

/** Readers that were used last: who goes from one view to another finds what was read. */
const kept = new Map<string, TraceReader>();
const KEPT_MAX = 60;

function readerOf(id: string): TraceReader {
  const reader = kept.get(id) ?? createTraceReader(logSource(id));
  kept.delete(id);
  kept.set(id, reader);
  for (const old of kept.keys()) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(old);
  }
  return reader;
}

type Kinds = ReadonlyMap<string, readonly string[]>;

/** Kinds of tools of each step, of each of these executions' playbooks. A user who may not see a playbook sees its steps without. */
function useKinds(executions: readonly Execution[]): ReadonlyMap<string, Kinds> {
  const entries = useQueries({
    queries: executions.map((execution) => ({ ...runDocument(execution), retry: false })),
    combine: (results) => results.map(({ data }) => data),
  });
  const ids = executions.map(({ execution_id }) => execution_id).join(" ");
  return useMemo(() => {
    const found = new Map<string, Kinds>();
    for (const [index, id] of ids.split(" ").entries()) {
      const entry = entries[index];
      if (entry === undefined) continue;
      found.set(id, new Map(graphOf(entry.payload).steps.map(({ name, kinds }) => [name, kinds])));
    }
    return found;
  }, [ids, entries]);
}

/** A playbook's kinds alone, for the details of one step. */
export function useStepKinds(execution: Execution | undefined, step: string): readonly string[] {
  const entry = useQuery({
    ...runDocument(execution ?? { path: "", version: 1, catalog_id: "" }),
    enabled: execution !== undefined,
    retry: false,
  });
  const payload = entry.data?.payload;
  return useMemo(
    () => (payload === undefined ? [] : (graphOf(payload).steps.find(({ name }) => name === step)?.kinds ?? [])),
    [payload, step],
  );
}
