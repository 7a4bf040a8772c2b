import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Execution } from "../../api/types.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import type { EventLog } from "../events/log.ts";
import { useEventLog } from "../events/use-event-log.ts";
import { countText } from "../traced/count-text.ts";
import type { Moment } from "../traced/use-traced.ts";
import { useSelection } from "../use-selection.ts";
import { LongLogTools } from "./long-log-tools.tsx";
import { nearestRun, openRuns, RUN_ENDS, type RunFilter, sectionOfEnd } from "./run-log.ts";
import { EndedRun, RunLines, type RunLook } from "./run-view.tsx";
import { useSearch } from "./use-search.ts";

/** What a head and a line are high, about: rows are measured when they are drawn. */
const HEAD_PX = 31;
const LINE_PX = 20;
/** Open commands whose lines are shown as they come. */
const OPEN_MAX = 10;

/** Where the list is to be: a number that changes with each jump, and the row. */
interface Jump {
  count: number;
  index: number;
}

/**
 * The log of a run that is too long to be read as a whole: its tasks' runs in the order in which they ended, each with all its lines, loaded
 * where one looks; below them what writes now. The server narrows it and finds its steps and failures.
 */
export function LongLog({ execution, moment }: { execution: Execution; moment: Moment | undefined }): ReactNode {
  const { execution_id: executionId, last_event_id: lastEventId } = execution;
  const [step, setStep] = useState<string>();
  const [isFailed, setIsFailed] = useState(false);
  const [hasTimes, setHasTimes] = useState(false);
  const [isWrapped, setIsWrapped] = useState(true);
  const isOpen = execution.ended_at === null && moment === undefined;
  const [isFollowed, setIsFollowed] = useState(isOpen);
  const log = useEventLog(executionId, { type: RUN_ENDS, step, isFailed }, lastEventId);
  const size = useSizeAt(log, moment);
  const filter = { step, isFailed };
  const until = moment?.event ?? Number.MAX_SAFE_INTEGER;
  const jumps = useJumps(log, () => setIsFollowed(false));
  const search = useFinding(executionId, filter, until, jumps.goTo);
  useStepInSight(execution, jumps.goTo);
  const open = useOpenRuns(isOpen && step === undefined && !isFailed ? execution : undefined);
  const look = { hasTimes, text: search.text };
  const problem = log.problem();
  return (
    <section className="card run-log" aria-label="Log">
      <LongLogTools
        {...{ execution, filter, until, size, ...search, hasTimes, setHasTimes, isWrapped, setIsWrapped }}
        {...{ isOpen, isFollowed, setIsFollowed }}
        onStep={setStep}
        onFailed={setIsFailed}
        onEnd={jumps.go}
        onFailure={(by) => jumps.goTo(nearestRun(executionId, { step, isFailed: true }, jumps.at.current, by))}
      />
      {problem !== undefined && <ProblemPanel error={problem} again={() => log.grow()} />}
      <Runs
        key={`${step}/${isFailed}`}
        {...{ executionId, log, size, look, jump: jumps.jump, isWrapped, isFollowed }}
        onTop={(id) => {
          jumps.at.current = id;
        }}
        onFollow={setIsFollowed}
      >
        {open.map((section) => (
          <RunLines key={section.key} section={section} look={look} />
        ))}
      </Runs>
      {log.size() === 0 && (
        <p className="pad quiet">{log.isCounted() ? "No run of a task is like this." : "Reading the log …"}</p>
      )}
    </section>
  );
}

/** The text that is looked for, the runs that have it, and the one of them at which the search stands. */
function useFinding(executionId: string, filter: RunFilter, until: number, goTo: ReturnType<typeof useJumps>["goTo"]) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(-1);
  const found = useSearch(executionId, filter, text, until);
  const { runs } = found;
  const onGo = (by: 1 | -1) => {
    if (runs.length === 0) return;
    const next = place < 0 && by < 0 ? runs.length - 1 : (place + by + runs.length) % runs.length;
    setPlace(next);
    goTo(Promise.resolve(runs[next]));
  };
  const isFirst = runs.length > 0 && place < 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when something is found
  useEffect(() => {
    if (isFirst) onGo(1);
  }, [isFirst]);
  const onText = (value: string) => {
    setText(value);
    setPlace(-1);
  };
  return { text, onText, found, place: Math.max(0, place), onGo };
}

/** Who comes from a step finds its first run in sight. */
function useStepInSight(execution: Execution, goTo: ReturnType<typeof useJumps>["goTo"]): void {
  const selection = useSelection(execution);
  const chosen = selection.isOwnChoice && selection.in === undefined ? selection.step : undefined;
  const isChosenHere = selection.command !== undefined;
  const { execution_id: executionId } = execution;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each step
  useEffect(() => {
    if (chosen !== undefined && !isChosenHere) goTo(nearestRun(executionId, { step: chosen, isFailed: false }, 0, 1));
  }, [chosen]);
}

/** How many runs had ended at a moment; all of them without one. */
function useSizeAt(log: EventLog, moment: Moment | undefined): number {
  const [at, setAt] = useState<{ event: number; log: EventLog; size: number }>();
  const event = moment?.event;
  useEffect(() => {
    if (event === undefined) return undefined;
    let isOver = false;
    log.find(event).then(
      ({ index, isThere }) => {
        if (!isOver) setAt({ event, log, size: index + (isThere ? 1 : 0) });
      },
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [log, event]);
  if (event === undefined) return log.size();
  return at !== undefined && at.event === event && at.log === log ? at.size : 0;
}

/** Jumps to rows, and to runs by the events of their ends; `at` is the event where one is. `onLeave`: the end is no longer followed. */
function useJumps(log: EventLog, onLeave: () => void) {
  const [jump, setJump] = useState<Jump>({ count: 0, index: -1 });
  const at = useRef(0);
  const go = (index: number) => {
    onLeave();
    at.current = log.at(index)?.event_id ?? (index === 0 ? 0 : Number.MAX_SAFE_INTEGER);
    setJump(({ count }) => ({ count: count + 1, index }));
  };
  const jumpTo = async (wanted: Promise<number | undefined>) => {
    const id = await wanted;
    if (id === undefined) return;
    const { index } = await log.find(id);
    onLeave();
    at.current = id;
    setJump(({ count }) => ({ count: count + 1, index }));
  };
  // What cannot be read is said by the log.
  const goTo = (wanted: Promise<number | undefined>) => void jumpTo(wanted).catch(() => undefined);
  return { jump, at, go, goTo };
}

/** What the runs that have not ended have written. */
function useOpenRuns(execution: Execution | undefined) {
  const commands = execution?.commands?.slice(0, OPEN_MAX) ?? [];
  const answers = useQueries({ queries: commands.map((one) => openRuns(execution?.execution_id ?? "", one)) });
  return answers.flatMap(({ data = [] }) => data);
}

interface RunsProps {
  executionId: string;
  log: EventLog;
  size: number;
  jump: Jump;
  look: RunLook;
  isWrapped: boolean;
  isFollowed: boolean;
  /** The event of the run at the top, after one has scrolled there. */
  onTop(id: number): void;
  onFollow(isFollowed: boolean): void;
  /** What comes below the runs that have ended. */
  children: readonly ReactNode[];
}

/** The runs in sight. */
function Runs(props: RunsProps): ReactNode {
  const { executionId, log, size, jump, look, isWrapped, isFollowed, onTop, onFollow, children } = props;
  const scroller = useRef<HTMLElement>(null);
  const rows = useVirtualizer({
    count: size,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => HEAD_PX + LINE_PX * linesOf(log, index),
    overscan: 8,
  });
  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => log.show(first, last), [log, first, last]);
  const height = rows.getTotalSize();
  const isThere = items.some(({ index }) => index === jump.index);
  const isRead = isThere && items.every(({ index }) => log.at(index) !== undefined);
  const isHeld = useRef(false);
  useEffect(() => {
    isHeld.current = jump.index >= 0;
  }, [jump]);
  // Rows get other heights as they are read and drawn: until those in sight are, the place is looked for again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: heights have changed
  useEffect(() => {
    if (!isHeld.current) return;
    rows.scrollToIndex(jump.index, { align: jump.index === 0 ? "start" : "center" });
    if (isRead) isHeld.current = false;
  }, [rows, jump, height, isRead]);
  const below = children.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is followed has grown
  useEffect(() => {
    const element = scroller.current;
    if (isFollowed && element !== null) element.scrollTop = element.scrollHeight;
  }, [isFollowed, size, height, below]);
  return (
    <section
      className={`log-lines long ${isWrapped ? "wrapped" : ""}`}
      ref={scroller}
      aria-label="Lines of the log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      tabIndex={0}
      onPointerDown={() => {
        isHeld.current = false;
      }}
      onWheel={({ deltaY }) => {
        isHeld.current = false;
        const top = log.at(rows.getVirtualItemForOffset(rows.scrollOffset ?? 0)?.index ?? 0);
        if (top !== undefined) onTop(top.event_id);
        if (deltaY < 0 && isFollowed) onFollow(false);
      }}
    >
      <div style={{ height }}>
        {items.map(({ index, start }) => {
          const event = log.at(index);
          return (
            <div key={index} data-index={index} ref={rows.measureElement} className="at" style={{ top: start }}>
              {event === undefined ? (
                <div className="log-section quiet waiting" data-waiting="">
                  Run {countText(index + 1)}: reading …
                </div>
              ) : (
                <EndedRun executionId={executionId} event={event} look={look} isFound={index === jump.index} />
              )}
            </div>
          );
        })}
      </div>
      {children}
    </section>
  );
}

/** How many lines a run has, as far as is known. */
function linesOf(log: EventLog, index: number): number {
  const event = log.at(index);
  return event === undefined ? 1 : (sectionOfEnd(event)?.lines.length ?? 0);
}
