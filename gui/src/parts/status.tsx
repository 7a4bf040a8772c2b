import type { ReactNode } from "react";

/** A sign and a word for each state: never the colour alone. */
const LOOKS: Record<string, { sign: string; tone: string }> = {
  PENDING: { sign: "○", tone: "quiet" },
  RUNNING: { sign: "◐", tone: "busy" },
  WAITING: { sign: "◷", tone: "busy" },
  PAUSED: { sign: "‖", tone: "warn" },
  COMPLETED: { sign: "✓", tone: "good" },
  FAILED: { sign: "✕", tone: "bad" },
  CANCELLED: { sign: "⊘", tone: "warn" },
  SKIPPED: { sign: "–", tone: "quiet" },
  ready: { sign: "✓", tone: "good" },
  draining: { sign: "◐", tone: "warn" },
  stale: { sign: "!", tone: "bad" },
  offline: { sign: "○", tone: "quiet" },
};

/** A state of an execution, a step or a worker. `isOver`: the execution of this step has ended, so nothing is pending any more. */
export function Status({
  of,
  short = false,
  isOver = false,
}: {
  of: string;
  short?: boolean;
  isOver?: boolean;
}): ReactNode {
  const isUnreached = isOver && of === "PENDING";
  const { sign, tone } = LOOKS[isUnreached ? "SKIPPED" : of] ?? { sign: "·", tone: "quiet" };
  const word = isUnreached ? "not reached" : of.toLowerCase();
  return (
    <span className={`status tone-${tone}`} data-status={of} title={word}>
      <span aria-hidden="true" className="sign">
        {sign}
      </span>
      {short ? <span className="unseen">{word}</span> : word}
    </span>
  );
}

/** Whether nothing more will happen. */
export function isFinal(status: string): boolean {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED";
}
