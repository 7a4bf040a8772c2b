import type { ReactNode } from "react";
import type { Overview } from "../api/types.ts";
import { countText } from "./count-text.ts";
import { Finding } from "./finding.tsx";
import { SweepButton } from "./sweep-button.tsx";

type Verdict = Overview["verdict"];
const TONES: Record<Verdict["level"], string> = { good: "tone-good", warn: "tone-warn", bad: "tone-bad" };
const SIGNS: Record<Verdict["level"], string> = { good: "✓", warn: "!", bad: "✕" };

/** The answer in one sentence, and what to do about each cause. */
export function VerdictPanel({
  verdict,
  executions,
}: {
  verdict: Verdict;
  executions: Overview["executions"];
}): ReactNode {
  const [first, ...others] = verdict.causes;
  return (
    <section className={`panel verdict ${TONES[verdict.level]}`} data-part="verdict" data-level={verdict.level}>
      <h2 role="status">
        <span aria-hidden="true" className="sign">
          {SIGNS[verdict.level]}
        </span>{" "}
        {verdict.what}
      </h2>
      {executions !== null && (
        <p className="quiet">
          Executions: {countText(executions.running)} running, {countText(executions.pending)} pending,{" "}
          {countText(executions.paused)} paused
        </p>
      )}
      {first !== undefined && <Finding finding={first} isShownAbove action={actionOf(first)} />}
      {others.length > 0 && (
        <>
          <h3>{others.length === 1 ? "One more finding" : `${others.length} more findings`}</h3>
          {others.map((cause) => (
            <Finding key={cause.check + cause.what} finding={cause} action={actionOf(cause)} />
          ))}
        </>
      )}
    </section>
  );
}

function actionOf({ action }: Verdict["causes"][number]): ReactNode {
  return action === "sweep" ? <SweepButton /> : undefined;
}
