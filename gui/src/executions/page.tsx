import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { readExecutionQuery } from "../../../src/schema/rules/execution-query.ts";
import "../styles/executions.css";
import { BulkButtons } from "./bulk/dialog.tsx";
import { ErrorGroups } from "./error-groups.tsx";
import { Filters } from "./filter/filters.tsx";
import { Histogram } from "./histogram.tsx";
import { ExecutionList } from "./list.tsx";

const route = getRouteApi("/executions");

/** What runs and what ran, newest first; or what went wrong, in groups. */
export function ExecutionsPage(): ReactNode {
  const { status, q, path, since, until, parent, view, called } = route.useSearch();
  // Who looks for something finds it wherever it is; else what others called stands beneath them.
  const isSought = q !== undefined || path !== undefined || parent !== undefined;
  const roots = called === "under" || (called === undefined && !isSought);
  const filters = useMemo(
    () => ({ status, q, path, since, until, parent, ...(roots && { roots }) }),
    [status, q, path, since, until, parent, roots],
  );
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
      <Filters filters={filters} isRoots={roots} />
      {!isReadable ? null : view === "errors" ? (
        <ErrorGroups key={key} filters={{ ...filters, roots: undefined }} />
      ) : (
        <>
          <Histogram filters={filters} />
          <ExecutionList key={key} filters={filters} marked={marked} onMark={setMarked} />
        </>
      )}
    </div>
  );
}
