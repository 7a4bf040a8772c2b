import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ExecutionFilters } from "./filter/queries.ts";

/** Where the list is empty: what to do next. */
export function NoExecutions({ filters }: { filters: ExecutionFilters }): ReactNode {
  const isNarrowed = Object.values({ ...filters, roots: undefined }).some((value) => value !== undefined);
  return (
    <section className="panel stack" data-part="nothing">
      {isNarrowed ? (
        <>
          <h2>No matching executions</h2>
          <p>
            Remove a filter, or{" "}
            <Link to="/executions" search={{}}>
              show all executions
            </Link>
            .
          </p>
        </>
      ) : (
        <>
          <h2>No executions yet</h2>
          <p>
            Start one from the <Link to="/catalog">catalog</Link>, or in a terminal:
          </p>
          <p>
            <code>flow run playbooks/examples/hello.yaml --runtime server</code>
          </p>
        </>
      )}
    </section>
  );
}
