import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { readExecutionQuery } from "../../../src/schema/rules/execution-query.ts";
import "../styles/executions.css";
import { BulkButtons } from "./bulk-dialog.tsx";
import { ErrorGroups } from "./error-groups.tsx";
import { Filters } from "./filters.tsx";
import { ExecutionList } from "./list.tsx";

const route = getRouteApi("/executions");

/** What runs and what ran, newest first; or what went wrong, in groups. */
export function ExecutionsPage(): ReactNode {
  const { status, q, path, since, until, parent, view } = route.useSearch();
  const filters = useMemo(() => ({ status, q, path, since, until, parent }), [status, q, path, since, until, parent]);
  // What cannot be read is told beside the search.
  const isReadable = readExecutionQuery(q ?? "", Date.now()).problem === undefined;
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  // Another filter is another list: what was marked in the one before is not seen here.
  const key = JSON.stringify(filters);
  const [markedIn, setMarkedIn] = useState(key);
  if (markedIn !== key) {
    setMarkedIn(key);
    setMarked(new Set());
  }
  return (
    <div className="stack">
      <div className="row spread">
        <h1>Executions</h1>
        {isReadable && view !== "errors" && (
          <BulkButtons filters={filters} marked={marked} onDone={() => setMarked(new Set())} />
        )}
      </div>
      <Filters />
      {!isReadable ? null : view === "errors" ? (
        <ErrorGroups key={key} filters={filters} />
      ) : (
        <ExecutionList key={key} filters={filters} marked={marked} onMark={setMarked} />
      )}
    </div>
  );
}
