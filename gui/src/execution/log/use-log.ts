import { useQueries } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { Execution } from "../../api/types.ts";
import { wholeEvent } from "../details/step-events.ts";
import { clippedTo } from "../traced/clipped.ts";
import { traceEventOf } from "../traced/trace-event.ts";
import { type Moment, useCalled, useReaders } from "../traced/use-traced.ts";
import type { LoggedExecution } from "./log-rows.ts";
import { type LogSection, logSectionsOf, withOpenCalls, withWholeLog } from "./sections.ts";

/** Called executions whose logs are part of it. */
const CALLED_MAX = 50;
/** Long logs that are read without being asked for: the last ones. */
const READ_MAX = 12;

/** The log of an execution and of what it called, down to the last one. */
export function useLog(execution: Execution, moment: Moment | undefined) {
  const [calls, setCalls] = useState<readonly string[]>([]);
  const [asked, setAsked] = useState<ReadonlySet<number>>(new Set());
  const { readers, version } = useReaders(execution, calls);
  const called = useCalled(calls);
  const read = called
    .map(({ execution_id, last_event_id, status }) => `${execution_id}@${last_event_id}${status}`)
    .join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was read has changed
  useEffect(() => {
    for (const { execution_id } of called) readers.get(execution_id)?.grow();
  }, [read, readers]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that the readers have read on
  const short = useMemo(
    () =>
      [execution, ...called].map((one): LoggedExecution => {
        const events = readers.get(one.execution_id)?.events() ?? [];
        const shown = moment === undefined || one === execution ? one : clippedTo(one, moment.at);
        const sections = logSectionsOf(events, moment?.event);
        const isLong = readers.get(one.execution_id)?.isLong() === true;
        return { execution: shown, sections: withOpenCalls(sections, shown.commands ?? []), isLong };
      }),
    [version, readers, execution, read, moment],
  );
  const found = callsOf(short, execution).slice(0, CALLED_MAX).join(" ");
  useEffect(() => setCalls(found === "" ? [] : found.split(" ")), [found]);
  const whole = useWhole(short, asked);
  const [root, ...rest] = whole.logs;
  return {
    root: root ?? { execution, sections: [] },
    called: new Map(rest.map((one) => [one.execution.execution_id, one])),
    isReading: [...readers.values()].some((reader) => reader.progress() !== undefined) || whole.isReading,
    /** Long logs that were not read. */
    left: whole.left,
    ask: (ids: readonly number[]) => setAsked((before) => new Set([...before, ...ids])),
  };
}

/** Executions that were called, in the order of the logs: those of open commands too. */
function callsOf(logs: readonly LoggedExecution[], root: Execution): string[] {
  const open = [root, ...logs.map(({ execution }) => execution)].flatMap(({ commands = [] }) =>
    commands.flatMap(({ children = [] }) => children),
  );
  return [...new Set([...logs.flatMap(({ sections }) => sections.flatMap(({ calls }) => calls)), ...open])];
}

/** The logs with those long ones that were asked for, and the last ones. */
function useWhole(logs: readonly LoggedExecution[], asked: ReadonlySet<number>) {
  const omitted = logs.flatMap(({ execution, sections, isLong }) =>
    (isLong === true ? [] : sections).flatMap(({ isOmitted, endId }) =>
      isOmitted && endId !== undefined ? [{ executionId: execution.execution_id, endId }] : [],
    ),
  );
  const wanted = [...omitted.filter(({ endId }) => asked.has(endId)), ...omitted.slice(-READ_MAX)];
  const unique = [...new Map(wanted.map((each) => [each.endId, each])).values()];
  const queries = useQueries({
    queries: unique.map(({ executionId, endId }) => wholeEvent(executionId, endId)),
    combine: (results) => ({
      events: results.map(({ data }) => data),
      isReading: results.some(({ isPending }) => isPending),
    }),
  });
  const { events } = queries;
  const whole = useMemo(() => {
    const byId = new Map(
      events.flatMap((event) => (event == null ? [] : [[event.event_id, traceEventOf(event)] as const])),
    );
    const filled = (section: LogSection) => {
      const end = section.endId === undefined ? undefined : byId.get(section.endId);
      return section.isOmitted && end !== undefined ? withWholeLog(section, end) : section;
    };
    return logs.map(({ sections, ...logged }) => ({ ...logged, sections: sections.map(filled) }));
  }, [logs, events]);
  const left = omitted.map(({ endId }) => endId).filter((id) => !unique.some(({ endId }) => endId === id));
  return { logs: whole, isReading: queries.isReading, left };
}
