import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { EventRecord } from "../../api/types.ts";
import { clockText, durationText } from "../../parts/time.ts";
import { wholeEvent } from "../details/step-events.ts";
import { StateSign } from "../state-sign.tsx";
import { Line } from "./log-row-view.tsx";
import { titleOf } from "./log-rows.ts";
import { sectionOfEnd } from "./run-log.ts";
import type { LogSection } from "./sections.ts";

/** How the runs of a long log are shown. */
export interface RunLook {
  hasTimes: boolean;
  /** What is looked for; "" for nothing. */
  text: string;
}

/** A run of a task that has ended, with its lines. What was left out because it is long is read when it comes in sight. */
export function EndedRun({
  executionId,
  event,
  look,
  isFound,
}: {
  executionId: string;
  event: EventRecord;
  look: RunLook;
  /** One has jumped to it. */
  isFound: boolean;
}): ReactNode {
  const short = useMemo(() => sectionOfEnd(event), [event]);
  const isOmitted = short?.isOmitted === true;
  const whole = useQuery({ ...wholeEvent(executionId, event.event_id), enabled: isOmitted });
  const full = whole.data == null ? undefined : whole.data;
  const section = useMemo(() => (full === undefined ? short : sectionOfEnd(full)), [short, full]);
  if (section === undefined) return null;
  return (
    <RunLines section={section} look={look} isFound={isFound}>
      {isOmitted && full === undefined && (
        <p className="log-section quiet">{whole.isError ? whole.error.message : "Reading its lines …"}</p>
      )}
    </RunLines>
  );
}

/** The head of a run and its lines. */
export function RunLines({
  section,
  look,
  isFound = false,
  children,
}: {
  section: LogSection;
  look: RunLook;
  isFound?: boolean;
  children?: ReactNode;
}): ReactNode {
  const { step, commandId, iteration, lines, dropped, isFailed, endId, from, to } = section;
  return (
    <div className="log-run" data-run={endId ?? "open"}>
      <div className="log-step" aria-current={isFound ? "true" : undefined}>
        <StateSign of={isFailed ? "FAILED" : endId === undefined ? "RUNNING" : "COMPLETED"} />
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({
            ...before,
            ...{ step, command: commandId, in: undefined },
            iteration: iteration === undefined ? undefined : String(iteration),
          })}
          replace
          resetScroll={false}
          className="name"
        >
          {step}
        </Link>
        <span className="quiet">{titleOf(section)}</span>
        <span className="quiet number end">{durationText(Math.max(0, to - from))}</span>
        <time className="quiet number">{clockText(to)}</time>
      </div>
      {children}
      {dropped > 0 && (
        <div className="log-section quiet">{dropped.toLocaleString("en")} earlier lines were not kept.</div>
      )}
      {lines.map((line, index) => (
        <Line
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have nothing else, and none comes in between
          key={index}
          line={line}
          number={dropped + index + 1}
          look={look}
        />
      ))}
    </div>
  );
}
