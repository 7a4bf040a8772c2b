import {
  Ban,
  Check,
  CircleDashed,
  ClockFading,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
  Pause,
  Recycle,
  RotateCcw,
  SkipForward,
  X,
} from "lucide-react";
import type { ReactNode } from "react";

/** A sign, a word and a tone for each state of a step or of its parts. */
const LOOKS: Readonly<Record<string, { Sign: LucideIcon; tone: string; word: string }>> = {
  PENDING: { Sign: CircleDashed, tone: "quiet", word: "not begun" },
  QUEUED: { Sign: ClockFading, tone: "warn", word: "queued" },
  RUNNING: { Sign: LoaderCircle, tone: "busy", word: "running" },
  RETRYING: { Sign: RotateCcw, tone: "warn", word: "retrying" },
  WAITING: { Sign: Hourglass, tone: "warn", word: "waiting" },
  PAUSED: { Sign: Pause, tone: "quiet", word: "paused" },
  COMPLETED: { Sign: Check, tone: "good", word: "completed" },
  REUSED: { Sign: Recycle, tone: "good", word: "reused" },
  FAILED: { Sign: X, tone: "bad", word: "failed" },
  CANCELLED: { Sign: Ban, tone: "quiet", word: "cancelled" },
  SKIPPED: { Sign: SkipForward, tone: "quiet", word: "skipped" },
  UNREACHED: { Sign: CircleDashed, tone: "quiet", word: "not reached" },
};

/** The state of a step or of its parts, as a sign with a word for who cannot see it. */
export function StateSign({ of }: { of: string }): ReactNode {
  const look = LOOKS[of];
  if (look === undefined) return <span className="state-sign" />;
  const { Sign, tone, word } = look;
  return (
    <span className={`state-sign tone-${tone}`} data-status={of} title={word}>
      <Sign className="icon" aria-hidden="true" />
      <span className="unseen">{word}</span>
    </span>
  );
}

/** The tone of a state, as classes name it. */
export function toneOfState(state: string): string {
  return LOOKS[state]?.tone ?? "quiet";
}
