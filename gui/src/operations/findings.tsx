import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Diagnosis } from "../api/types.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { Finding } from "./finding.tsx";

/** What the doctor's checks found, the urgent first, each with what to do; and the figures whatever is wrong. */
export function Findings({ examined }: { examined: UseQueryResult<Diagnosis> }): ReactNode {
  const { data } = examined;
  return (
    <section className="panel stack" data-part="findings">
      <div className="row spread">
        <h2>What the doctor finds</h2>
        <button type="button" disabled={examined.isFetching} onClick={() => void examined.refetch()}>
          {examined.isFetching ? "Examining …" : "Examine again"}
        </button>
      </div>
      {examined.isError && data === undefined && <ProblemPanel error={examined.error} />}
      {data !== undefined && <Found diagnosis={data} />}
    </section>
  );
}

function Found({ diagnosis }: { diagnosis: Diagnosis }): ReactNode {
  const { findings, skipped, counts, checks } = diagnosis;
  const urgent = findings.filter(({ level }) => level === "anomaly");
  const rest = findings.filter(({ level }) => level !== "anomaly");
  return (
    <>
      <p>
        {urgent.length === 0
          ? `Nothing is wrong that its ${checks.length} checks know of.`
          : `${urgent.length} ${urgent.length === 1 ? "thing is" : "things are"} wrong, by ${checks.length} checks.`}
        {rest.length > 0 && ` ${rest.length} worth knowing.`}
      </p>
      {skipped.map(({ check, why }) => (
        <p key={check} className="wrap">
          Not checked: {check} ({why})
        </p>
      ))}
      {[...urgent, ...rest].map((finding) => (
        <Finding key={`${finding.check} ${finding.what}`} finding={finding} />
      ))}
      <details>
        <summary>Figures</summary>
        <dl className="facts">
          {Object.entries(counts).map(([name, value]) => (
            <div key={name} className="fact">
              <dt>{name.replaceAll("_", " ")}</dt>
              <dd className="number">{value.toLocaleString("en")}</dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  );
}
