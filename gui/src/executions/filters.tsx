import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { type QueryProblem, readExecutionQuery } from "../../../src/schema/rules/execution-query.ts";
import { StateFilter } from "./state-filter.tsx";
import { TimeFilter } from "./time-filter.tsx";

const route = getRouteApi("/executions");

const EXAMPLES = `a part of a path, or the start of an id
status:failed,cancelled  path:etl/*  version:3
label.team:data  input.day:2026-01-31
error:HTTP_429  step:load  parent:7211
started:>1h  started:<7d  by:mcp  is:root`;

/** What the list is narrowed to; it stands in the address. */
export function Filters(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const known = search.q ?? search.path ?? "";
  const [query, setQuery] = useState(known);
  useEffect(() => setQuery(known), [known]);
  const problem = readExecutionQuery(query, Date.now()).problem;
  const change = (values: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...values }), replace: true });
  const take = (text: string) => {
    const q = text.trim();
    if (readExecutionQuery(q, Date.now()).problem === undefined && q !== known) {
      change({ q: q === "" ? undefined : q, path: undefined });
    }
  };
  return (
    <search className="stack filters">
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          take(query);
        }}
      >
        <label className="search">
          Search
          <input
            data-filter
            type="search"
            value={query}
            placeholder="etl  label.team:data  error:HTTP_429"
            title={EXAMPLES}
            aria-invalid={problem !== undefined}
            aria-describedby={problem === undefined ? undefined : "search-problem"}
            onChange={(event) => setQuery(event.target.value)}
            // Escape empties a search field and leaves it: what is not seen any more must not narrow the list.
            onKeyDown={({ key }) => key === "Escape" && flushSync(() => setQuery(""))}
            onBlur={(event) => take(event.target.value)}
          />
        </label>
        <TimeFilter since={search.since} until={search.until} onChange={change} />
        <label>
          <input
            type="checkbox"
            checked={search.view === "errors"}
            onChange={(event) => change({ view: event.target.checked ? "errors" : undefined })}
          />
          Errors in groups
        </label>
        {search.parent !== undefined && (
          <button type="button" onClick={() => change({ parent: undefined })}>
            Called by {search.parent} <span aria-hidden="true">✕</span>
            <span className="unseen">: take this filter away</span>
          </button>
        )}
      </form>
      {problem !== undefined && <SearchProblem query={query} problem={problem} />}
      {search.view !== "errors" && (
        <StateFilter status={search.status} onChange={(status) => change({ status: status || undefined })} />
      )}
    </search>
  );
}

/** What of a search cannot be read, and where. */
function SearchProblem({ query, problem: { message, from, to } }: { query: string; problem: QueryProblem }): ReactNode {
  return (
    <p id="search-problem" className="search-problem" role="status">
      <code>
        {query.slice(0, from)}
        <mark>{query.slice(from, to) || " "}</mark>
        {query.slice(to)}
      </code>
      <span>{message}</span>
    </p>
  );
}
