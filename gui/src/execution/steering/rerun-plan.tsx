import type { ReactNode } from "react";
import type { Rerun } from "../../api/types.ts";

/** Steps that are named before the rest is counted. */
const NAMED_MAX = 12;

/** What a rerun would do: what keeps its result, what runs again, and what of that has effects elsewhere. */
export function RerunPlanView({ plan }: { plan: Rerun }): ReactNode {
  const { steps = [], warnings = [] } = plan;
  const reused = steps.filter(({ action }) => action === "reuse").map(({ step }) => step);
  const run = steps.filter(({ action }) => action === "run");
  const isRisky = run.some(({ effect, protected_by }) => effect !== null && protected_by === null);
  return (
    <section className="stack rerun-plan" aria-label="Plan" aria-live="polite">
      <p className="wrap">
        <strong>{reused.length === 0 ? "Nothing is reused." : `${keepText(reused.length)}: `}</strong>
        {namesText(reused)}
      </p>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>Runs again</th>
              <th>Kind</th>
              <th>Effects</th>
            </tr>
          </thead>
          <tbody>
            {run.map(({ step, kind, effect, protected_by }) => (
              <tr key={step}>
                <td className="wrap">
                  {step}
                  {!plan.will_run.includes(step) && <span className="quiet"> if it is reached</span>}
                </td>
                <td className="mono">{kind}</td>
                <td>
                  {effect === null ? (
                    <span className="quiet">nothing</span>
                  ) : (
                    <>
                      {effect}
                      {protected_by !== null && <span className="quiet">, once by its idempotency key</span>}
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {warnings.map((warning) => (
        <p key={warning} className="tone-warn wrap">
          {warning}
        </p>
      ))}
      {isRisky && <p className="tone-warn">Effects happen again unless an idempotency key prevents it.</p>}
    </section>
  );
}

function keepText(count: number): string {
  return count === 1 ? "1 step keeps its result" : `${count} steps keep their results`;
}

function namesText(names: readonly string[]): string {
  if (names.length <= NAMED_MAX) return names.join(", ");
  return `${names.slice(0, NAMED_MAX).join(", ")} and ${names.length - NAMED_MAX} more`;
}
