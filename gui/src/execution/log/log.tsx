import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { Execution } from "../../api/types.ts";
import type { Moment } from "../traced/use-traced.ts";
import { useSelection } from "../use-selection.ts";
import { LogRowView } from "./log-row-view.tsx";
import { type LogRow, logRowsOf, logText, matchesOf } from "./log-rows.ts";
import { LogTools } from "./log-tools.tsx";
import { LongLog } from "./long-log.tsx";
import type { Level } from "./sections.ts";
import { useLog } from "./use-log.ts";
import "../../styles/run-log.css";

const ROW_PX = 22;
/** Pixels from the end within which new lines pull the view along. */
const NEAR_PX = 60;

interface LogProps {
  execution: Execution;
  moment: Moment | undefined;
}

/** The log of the whole run: of one that is too long to be read at once, what is in sight. */
export default function Log({ execution, moment }: LogProps): ReactNode {
  const log = useLog(execution, moment);
  if (log.root.isLong === true) return <LongLog execution={execution} moment={moment} />;
  return <WholeLog execution={execution} moment={moment} log={log} />;
}

/** One log of the whole run, what it called included: steps fold, lines are searched, and the end is followed while it runs. */
function WholeLog({ execution, moment, log }: LogProps & { log: ReturnType<typeof useLog> }): ReactNode {
  const selection = useSelection(execution);
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [least, setLeast] = useState<Level>("debug");
  const [text, setText] = useState("");
  const [isWrapped, setIsWrapped] = useState(true);
  const [hasTimes, setHasTimes] = useState(false);
  const [isFollowed, setIsFollowed] = useState(execution.ended_at === null);
  const rows = useMemo(
    () => logRowsOf({ root: log.root, called: log.called, folded, least }),
    [log.root, log.called, folded, least],
  );
  const found = useMemo(() => matchesOf(rows, text), [rows, text]);
  const [place, setPlace] = useState(0);
  const match = found[Math.min(place, Math.max(0, found.length - 1))];
  const fold = (key: string) =>
    setFolded((before) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  const steps = rows.flatMap((row) => (row.is === "step" ? [row.key] : []));
  const isAllFolded = steps.length > 0 && steps.every((key) => folded.has(key));
  return (
    <section className="card run-log" aria-label="Log">
      <LogTools
        text={text}
        onText={(value) => {
          setText(value);
          setPlace(0);
          if (value !== "") {
            setFolded(new Set());
            if (log.left.length > 0) log.ask(log.left.slice(0, 100));
          }
        }}
        found={found.length}
        place={Math.min(place, Math.max(0, found.length - 1))}
        onGo={(by) => setPlace((before) => (found.length === 0 ? 0 : (before + by + found.length) % found.length))}
        {...{ least, setLeast, isWrapped, setIsWrapped, hasTimes, setHasTimes, isFollowed, setIsFollowed }}
        isOpen={execution.ended_at === null && moment === undefined}
        isAllFolded={isAllFolded}
        onFoldAll={() => setFolded(isAllFolded ? new Set() : new Set(steps))}
        left={log.left.length}
        onReadAll={() => log.ask(log.left)}
        file={`${execution.path.replaceAll("/", "-")}-${execution.execution_id}.log`}
        content={() => logText(logRowsOf({ root: log.root, called: log.called, folded: new Set(), least: "debug" }))}
      />
      <Lines
        rows={rows}
        look={{ hasTimes, text, rootId: execution.execution_id }}
        isWrapped={isWrapped}
        isFollowed={isFollowed}
        onFollow={setIsFollowed}
        match={match}
        chosen={`${selection.in ?? execution.execution_id}/${selection.step}`}
        isOwnChoice={selection.isOwnChoice}
        onFold={fold}
        onRead={(id) => log.ask([id])}
      />
      {rows.length === 0 && (
        <p className="pad quiet">{log.isReading ? "Reading the log …" : nothingText(execution, least)}</p>
      )}
    </section>
  );
}

function nothingText(execution: Execution, least: Level): string {
  if (least === "error" || least === "warn") return "No lines of this level.";
  return execution.ended_at === null ? "No task has run yet. Its lines will appear here." : "No task wrote any output.";
}

interface LinesProps {
  rows: readonly LogRow[];
  look: Parameters<typeof LogRowView>[0]["look"];
  isWrapped: boolean;
  isFollowed: boolean;
  onFollow(isFollowed: boolean): void;
  match: number | undefined;
  /** Key of the step that is chosen on the page. */
  chosen: string;
  isOwnChoice: boolean;
  onFold(key: string): void;
  onRead(eventId: number): void;
}

function Lines(props: LinesProps): ReactNode {
  const { rows, look, isWrapped, isFollowed, onFollow, match, chosen, isOwnChoice, onFold, onRead } = props;
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 30,
  });
  useEffect(() => {
    if (match !== undefined) virtual.scrollToIndex(match, { align: "center" });
  }, [match, virtual]);
  const count = rows.length;
  useEffect(() => {
    if (isFollowed && count > 0) virtual.scrollToIndex(count - 1, { align: "end" });
  }, [isFollowed, count, virtual]);
  // A user who comes from a step finds its lines in sight; later lines do not move them.
  const isPlaced = useRef<string>(undefined);
  const place = rows.findIndex((row) => row.is === "step" && row.key === chosen);
  useEffect(() => {
    if (!isOwnChoice || place < 0 || isPlaced.current === chosen) return;
    isPlaced.current = chosen;
    virtual.scrollToIndex(place, { align: "start" });
  }, [isOwnChoice, place, chosen, virtual]);
  return (
    <section
      className={`log-lines ${isWrapped ? "wrapped" : ""}`}
      ref={scroller}
      aria-label="Lines of the log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      tabIndex={0}
      onWheel={({ deltaY }) => {
        if (deltaY < 0 && isFollowed) onFollow(false);
      }}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        if (isFollowed && scrollHeight - scrollTop - clientHeight > 20 * NEAR_PX) onFollow(false);
      }}
    >
      <div style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start, key }) => {
          const row = rows[index];
          return (
            row !== undefined && (
              <div key={key} data-index={index} ref={virtual.measureElement} className="at" style={{ top: start }}>
                <LogRowView
                  row={row}
                  look={look}
                  isFound={index === match}
                  isChosen={row.is === "step" && row.key === chosen}
                  onFold={onFold}
                  onRead={onRead}
                />
              </div>
            )
          );
        })}
      </div>
    </section>
  );
}
