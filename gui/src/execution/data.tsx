import type { ReactNode } from "react";
import type { Execution } from "../api/types.ts";
import { JsonView } from "../parts/json/view.tsx";

/** What went in and what came out. */
export function Data({ execution }: { execution: Execution }): ReactNode {
  return (
    <div className="split">
      <section className="panel">
        <JsonView label="Inputs" value={execution.workload} />
      </section>
      <section className="panel">
        <JsonView label="Result" value={execution.result ?? null} />
      </section>
    </div>
  );
}
