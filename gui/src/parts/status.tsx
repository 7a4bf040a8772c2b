import {
  Ban,
  Check,
  Circle,
  CircleDashed,
  CircleSlash,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
  Minus,
  Pause,
  TriangleAlert,
  X,
} from "lucide-react";
import type { ReactNode } from "react";

/** A sign and a word for each state: never the colour alone. */
const LOOKS: Record<string, { Sign: LucideIcon; tone: string }> = {
  PENDING: { Sign: CircleDashed, tone: "quiet" },
  RUNNING: { Sign: LoaderCircle, tone: "busy" },
  WAITING: { Sign: Hourglass, tone: "warn" },
  PAUSED: { Sign: Pause, tone: "quiet" },
  COMPLETED: { Sign: Check, tone: "good" },
  FAILED: { Sign: X, tone: "bad" },
  CANCELLED: { Sign: Ban, tone: "quiet" },
  SKIPPED: { Sign: Minus, tone: "quiet" },
  open: { Sign: Hourglass, tone: "warn" },
  approved: { Sign: Check, tone: "good" },
  rejected: { Sign: X, tone: "bad" },
  expired: { Sign: Minus, tone: "quiet" },
  cancelled: { Sign: Ban, tone: "quiet" },
  started: { Sign: Check, tone: "good" },
  queued: { Sign: Hourglass, tone: "warn" },
  skipped: { Sign: Minus, tone: "quiet" },
  missed: { Sign: TriangleAlert, tone: "warn" },
  failed: { Sign: X, tone: "bad" },
  ready: { Sign: Check, tone: "good" },
  draining: { Sign: CircleSlash, tone: "warn" },
  stale: { Sign: TriangleAlert, tone: "bad" },
  offline: { Sign: Circle, tone: "quiet" },
};
const UNKNOWN = { Sign: Circle, tone: "quiet" };

/** A state of an execution, a step or a worker. `isOver`: the execution of this step has ended, so nothing is pending any more. */
export function Status({
  of,
  short = false,
  isOver = false,
  word,
  look = of,
}: {
  of: string;
  short?: boolean;
  isOver?: boolean;
  /** What it says in place of the state's own word: `Retrying in 12 s`. */
  word?: ReactNode;
  /** The state whose sign and colour it has: that of one which waits, though it runs. */
  look?: string;
}): ReactNode {
  const isUnreached = isOver && of === "PENDING";
  const { Sign, tone } = LOOKS[isUnreached ? "SKIPPED" : look] ?? UNKNOWN;
  const own = isUnreached ? "not reached" : of.toLowerCase();
  return (
    <span className={`status tone-${tone} ${short ? "short" : ""}`} data-status={of} data-look={look} title={own}>
      <Sign className="icon" aria-hidden="true" />
      <span className={short ? "unseen" : "word"}>{word ?? own}</span>
    </span>
  );
}

/** Whether nothing more will happen. */
export function isFinal(status: string): boolean {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED";
}
