import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Diagnosis } from "../api/types.ts";
import { CopyButton } from "../parts/copy.tsx";
import { Ago } from "../parts/now.tsx";

/** What the checks found, the urgent first, each with what to do; and the figures whatever is wrong. */
export function Findings({ diagnosis }: { diagnosis: Diagnosis }): ReactNode {
  const { findings, skipped, counts, checks } = diagnosis;
  const urgent = findings.filter(({ level }) => level === "anomaly");
  return (
    <div className="stack">
      <section className={`panel tone-${urgent.length > 0 ? "bad" : "good"}`} data-part="verdict">
        <h2>
          {urgent.length > 0
            ? `${urgent.length} thing${urgent.length === 1 ? " is" : "s are"} wrong`
            : "Nothing is wrong that the checks know of"}
        </h2>
        <p className="quiet">{checks.length} checks were made.</p>
        {skipped.map(({ check, why }) => (
          <p key={check} className="wrap">
            Not checked: {check} ({why})
          </p>
        ))}
      </section>
      {[...urgent, ...findings.filter(({ level }) => level !== "anomaly")].map((finding) => (
        <article
          key={`${finding.check} ${finding.what}`}
          className={`panel stack tone-${finding.level === "anomaly" ? "bad" : "warn"}`}
        >
          <h3 className="wrap">{finding.what}</h3>
          <p className="quiet">
            <code>{finding.check}</code>
            {finding.since !== null && (
              <>
                , since <Ago at={finding.since} />
              </>
            )}
          </p>
          <p className="wrap">{finding.why_it_matters}</p>
          <p className="wrap">
            <strong>What to do:</strong> {finding.what_to_do}
          </p>
          {finding.command !== null && (
            <div className="row">
              <code className="wrap">{finding.command}</code>
              <CopyButton label="Copy" text={finding.command} />
            </div>
          )}
          {finding.execution_ids !== undefined && finding.execution_ids.length > 0 && (
            <p className="row">
              {finding.execution_ids.map((id) => (
                <Link key={id} to="/executions/$executionId" params={{ executionId: id }} className="mono">
                  {id}
                </Link>
              ))}
            </p>
          )}
        </article>
      ))}
      <section className="panel">
        <h2>Figures</h2>
        <dl className="facts">
          {Object.entries(counts).map(([name, value]) => (
            <div key={name} className="fact">
              <dt>{name.replaceAll("_", " ")}</dt>
              <dd className="number">{value.toLocaleString("en")}</dd>
            </div>
          ))}
        </dl>
      </section>
    </div>
  );
}
