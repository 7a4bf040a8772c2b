import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { diagnosis, workerPool } from "../app/queries.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { Findings } from "./findings.tsx";
import { SweepButton } from "./sweep-button.tsx";
import { Workers } from "./workers.tsx";

/** Why is nothing running: what is wrong first, then how much there is of what, then who works. */
export function OperationsPage(): ReactNode {
  const examined = useQuery(diagnosis());
  const workers = useQuery(workerPool());
  return (
    <div className="stack">
      <div className="row spread">
        <h1>Operations</h1>
        <div className="row">
          <SweepButton />
          <button type="button" disabled={examined.isFetching} onClick={() => void examined.refetch()}>
            {examined.isFetching ? "Examining …" : "Examine again"}
          </button>
        </div>
      </div>
      {examined.isError && <ProblemPanel error={examined.error} again={() => void examined.refetch()} />}
      {examined.isPending && <p className="quiet">Examining the service …</p>}
      {examined.data !== undefined && <Findings diagnosis={examined.data} />}
      {workers.isError && <ProblemPanel error={workers.error} again={() => void workers.refetch()} />}
      {workers.data !== undefined && <Workers workers={workers.data.items} />}
    </div>
  );
}
