import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Diagnosis } from "../api/types.ts";
import { CopyButton } from "../parts/copy.tsx";
import { Ago } from "../parts/now.tsx";

/** Executions of a finding that are linked; more say no more. */
const LINKED_MAX = 6;

/** One thing that is not as it should be: since when, why that matters, and what to do. `isTold`: its sentence stands above. */
export function Finding({
  finding,
  isShownAbove = false,
  action,
}: {
  finding: Diagnosis["findings"][number];
  isShownAbove?: boolean;
  action?: ReactNode;
}): ReactNode {
  const ids = finding.execution_ids ?? [];
  return (
    <article className={`finding tone-${finding.level === "anomaly" ? "bad" : "warn"}`} data-check={finding.check}>
      {!isShownAbove && <h4 className="wrap">{finding.what}</h4>}
      <p className="wrap">
        {finding.why_it_matters} <strong>What to do:</strong> {finding.what_to_do}
        {finding.since !== null && (
          <span className="quiet">
            {" "}
            Since <Ago at={finding.since} />.
          </span>
        )}
      </p>
      {(finding.command !== null || action !== undefined) && (
        <div className="row">
          {action}
          {finding.command !== null && (
            <>
              <code className="wrap command">{finding.command}</code>
              <CopyButton label="Copy" text={finding.command} />
            </>
          )}
        </div>
      )}
      {ids.length > 0 && (
        <p className="row">
          <span className="quiet">Executions</span>
          {ids.slice(0, LINKED_MAX).map((id) => (
            <Link key={id} to="/executions/$executionId" params={{ executionId: id }} className="mono">
              {id}
            </Link>
          ))}
          {ids.length > LINKED_MAX && <span className="quiet">and more</span>}
        </p>
      )}
    </article>
  );
}
