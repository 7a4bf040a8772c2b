import { type ReactNode, useEffect, useRef, useState } from "react";
import { queries } from "../api/queries.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { carryOut, PLAN_MAX, type Plan, type Progress, planOf } from "./cancel-plan.ts";
import type { ExecutionFilters } from "./queries.ts";

type CancelScope = "marked" | "all";

/**
 * Cancels the marked executions, or all open ones of the filter: counts them, asks for confirmation, then shows each result.
 */
export function CancelMany({
  filters,
  marked,
  onDone,
}: {
  filters: ExecutionFilters;
  marked: ReadonlySet<string>;
  onDone(): void;
}): ReactNode {
  const [scope, setScope] = useState<CancelScope | undefined>();
  const may = useAllowed("execute", { to: "cancel executions" });
  return (
    <div className="row">
      {marked.size > 0 && (
        <AllowedButton may={may} className="risky" onClick={() => setScope("marked")}>
          Cancel {marked.size} marked …
        </AllowedButton>
      )}
      <AllowedButton may={may} onClick={() => setScope("all")}>
        Cancel all of these …
      </AllowedButton>
      {scope !== undefined && (
        <CancelDialog
          filters={filters}
          only={scope === "marked" ? marked : undefined}
          onClose={(isDone) => {
            setScope(undefined);
            if (isDone) onDone();
          }}
        />
      )}
    </div>
  );
}

function CancelDialog({
  filters,
  only,
  onClose,
}: {
  filters: ExecutionFilters;
  only: ReadonlySet<string> | undefined;
  onClose(isDone: boolean): void;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const stop = useRef(new AbortController());
  const [plan, setPlan] = useState<Plan | undefined>();
  const [counted, setCounted] = useState(0);
  const [error, setError] = useState<unknown>();
  const [progress, setProgress] = useState<Progress | undefined>();
  const [isOver, setOver] = useState(false);
  // The dialog is about the list at the time it was opened.
  const initial = useRef({ filters, only });
  useEffect(() => {
    const ended = new AbortController();
    stop.current = new AbortController();
    dialog.current?.showModal();
    planOf(initial.current.filters, initial.current.only, setCounted, ended.signal).then(
      setPlan,
      (problem: unknown) => {
        if (!ended.signal.aborted) setError(problem);
      },
    );
    return () => {
      ended.abort();
      stop.current.abort();
    };
  }, []);
  const run = async () => {
    if (plan === undefined) return;
    setProgress({ requested: 0, cancelled: 0, ended: 0, refused: new Map() });
    await carryOut(plan, setProgress, stop.current.signal);
    setOver(true);
    void queries.invalidateQueries({ queryKey: ["executions"] });
  };
  const isUnderWay = progress !== undefined && !isOver;
  return (
    <dialog ref={dialog} aria-labelledby="cancel-title" onClose={() => onClose(progress !== undefined)}>
      <div className="stack">
        <h1 id="cancel-title">{titleOf(plan)}</h1>
        {error !== undefined && <ProblemPanel error={error} />}
        {plan === undefined && error === undefined && <p role="status">{counted} counted so far …</p>}
        {plan !== undefined && <PlanText plan={plan} />}
        {progress !== undefined && plan !== undefined && (
          <ProgressText progress={progress} total={plan.ids.length} isOver={isOver} />
        )}
        <div className="row">
          {plan !== undefined && plan.ids.length > 0 && progress === undefined && (
            <button type="button" className="risky" onClick={() => void run()}>
              Cancel {executionsText(plan.ids.length)}
            </button>
          )}
          {isUnderWay && (
            <button type="button" onClick={() => stop.current.abort()}>
              Stop
            </button>
          )}
          <button type="button" disabled={isUnderWay} onClick={() => dialog.current?.close()}>
            {progress === undefined ? "Leave them" : "Close"}
          </button>
        </div>
      </div>
    </dialog>
  );
}

function titleOf(plan: Plan | undefined): string {
  if (plan === undefined) return "Counting what is open …";
  return plan.ids.length === 0 ? "Nothing of this is open" : `Cancel ${executionsText(plan.ids.length)}?`;
}

/** What is meant: of which playbooks, how many, since when. */
function PlanText({ plan }: { plan: Plan }): ReactNode {
  if (plan.ids.length === 0) return <p>What the filter names has ended already: there is nothing to cancel.</p>;
  const named = plan.paths.slice(0, 6);
  return (
    <>
      <ul className="plan">
        {named.map(({ path, count }) => (
          <li key={path} className="wrap">
            <strong className="number">{count.toLocaleString("en")}</strong> of {path}
          </li>
        ))}
        {plan.paths.length > named.length && <li>and of {plan.paths.length - named.length} more playbooks</li>}
      </ul>
      <p className="wrap">
        {plan.oldest !== undefined && (
          <>
            The oldest began <Ago at={plan.oldest} />.{" "}
          </>
        )}
        What they have called is cancelled too. This cannot be taken back. What starts from now on is not touched.
      </p>
      {plan.more && (
        <p>There are more: these are the newest {PLAN_MAX.toLocaleString("en")}. Do it again for the others.</p>
      )}
    </>
  );
}

function ProgressText({ progress, total, isOver }: { progress: Progress; total: number; isOver: boolean }): ReactNode {
  const { requested, cancelled, ended, refused } = progress;
  const failed = [...refused.values()].reduce((sum, ids) => sum + ids.length, 0);
  return (
    <>
      <progress value={requested} max={total} aria-label="Requested so far" />
      <p role="status">
        {isOver ? (requested < total ? "Stopped: " : "Done: ") : `${requested} of ${total} requested: `}
        {cancelled} cancelled
        {ended > 0 && `, ${ended} had ended by themselves`}
        {failed > 0 && `, ${failed} refused`}
        {isOver && requested < total && `, ${total - requested} left as they are`}
      </p>
      {[...refused].slice(0, 5).map(([why, ids]) => (
        <p key={why} className="wrap refusal tone-bad">
          <strong>{ids.length} ×</strong> {why} <span className="quiet mono">({ids.slice(0, 5).join(", ")})</span>
        </p>
      ))}
    </>
  );
}

function executionsText(count: number): string {
  return `${count.toLocaleString("en")} execution${count === 1 ? "" : "s"}`;
}
