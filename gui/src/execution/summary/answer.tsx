import { Link } from "@tanstack/react-router";
import { Ban, Check, ClockFading, Hourglass, LoaderCircle, type LucideIcon, Pause, RotateCcw, X } from "lucide-react";
import type { ReactNode } from "react";
import type { Execution } from "../../api/types.ts";
import { Ended } from "./ended.tsx";
import { lastErrorOf, lastFailed } from "./last-error.ts";
import { Deciding, Paused, Queued, Retrying, Running, Waiting } from "./open.tsx";
import { type Situation, situationOf } from "./situation.ts";
import { StepLink } from "./step-link.tsx";

/** What a person came for: how it ended and why, what it does now, or whom or what it waits for, with the next thing to do. */
export function Answer({ execution }: { execution: Execution }): ReactNode {
  const situation = situationOf(execution);
  const { Sign, tone } = LOOKS[situation];
  return (
    <section className={`answer tone-${tone}`} data-part="answer" data-situation={situation} aria-label="Answer">
      <Sign className="icon sign" aria-hidden="true" />
      {partOf(situation, execution)}
      {execution.ended_at === null && <EarlierFailure execution={execution} />}
    </section>
  );
}

const LOOKS: Readonly<Record<Situation, { Sign: LucideIcon; tone: string }>> = {
  completed: { Sign: Check, tone: "good" },
  failed: { Sign: X, tone: "bad" },
  cancelled: { Sign: Ban, tone: "quiet" },
  paused: { Sign: Pause, tone: "quiet" },
  running: { Sign: LoaderCircle, tone: "busy" },
  retrying: { Sign: RotateCcw, tone: "warn" },
  waiting: { Sign: Hourglass, tone: "warn" },
  queued: { Sign: ClockFading, tone: "warn" },
  deciding: { Sign: LoaderCircle, tone: "busy" },
};

function partOf(situation: Situation, execution: Execution): ReactNode {
  switch (situation) {
    case "completed":
    case "failed":
    case "cancelled":
      return <Ended execution={execution} />;
    case "paused":
      return <Paused execution={execution} />;
    case "running":
      return <Running execution={execution} />;
    case "retrying":
      return <Retrying execution={execution} />;
    case "waiting":
      return <Waiting execution={execution} />;
    case "queued":
      return <Queued execution={execution} />;
    case "deciding":
      return <Deciding />;
  }
}

/** Of an execution that goes on: what failed in it before. */
function EarlierFailure({ execution }: { execution: Execution }): ReactNode {
  const failed = lastFailed(execution);
  const error = lastErrorOf(execution) as { message?: string } | undefined;
  if (failed === undefined || error === undefined) return null;
  return (
    <p className="aside tone-bad wrap">
      <X className="icon" aria-hidden="true" />
      <span>
        <StepLink name={failed.name} /> failed before: {error.message?.slice(0, 300)}{" "}
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({ ...before, tab: "log" as const, step: failed.name })}
        >
          Open the log
        </Link>
      </span>
    </p>
  );
}
