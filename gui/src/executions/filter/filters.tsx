import { getRouteApi } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { type QueryProblem, readExecutionQuery } from "../../../../src/schema/rules/execution-query.ts";
import type { ExecutionFilters } from "./queries.ts";
import { SavedViews, SaveView } from "./saved-views.tsx";
import { StateFilter } from "./state-filter.tsx";
import { Suggestions, suggestionsFor, withSuggestion } from "./suggestions.tsx";
import { TimeFilter } from "./time-filter.tsx";

const route = getRouteApi("/executions");

/** What the list is narrowed to; it stands in the address. `isRoots`: executions that others called are not in the list itself. */
export function Filters({ filters, isRoots }: { filters: ExecutionFilters; isRoots: boolean }): ReactNode {
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
        <QueryBox query={query} isUnreadable={problem !== undefined} onQuery={setQuery} onTake={take} />
        <TimeFilter since={search.since} until={search.until} onChange={change} />
        <SaveView />
        {search.parent !== undefined && (
          <button type="button" onClick={() => change({ parent: undefined })}>
            Called by {search.parent} <span aria-hidden="true">✕</span>
            <span className="unseen">: take this filter away</span>
          </button>
        )}
      </form>
      {problem !== undefined && <SearchProblem query={query} problem={problem} />}
      <div className="row spread">
        <div className="row views">
          {search.view !== "errors" && (
            <StateFilter
              filters={filters}
              status={search.status}
              onChange={(status) => change({ status: status || undefined })}
            />
          )}
          <SavedViews />
        </div>
        <div className="row">
          <label className="quiet">
            <input
              type="checkbox"
              checked={isRoots}
              onChange={(event) => change({ called: event.target.checked ? "under" : "shown" })}
            />
            Roots only
          </label>
          <label className="quiet">
            <input
              type="checkbox"
              checked={search.view === "errors"}
              onChange={(event) => change({ view: event.target.checked ? "errors" : undefined })}
            />
            Errors in groups
          </label>
        </div>
      </div>
    </search>
  );
}

interface QueryBoxProps {
  query: string;
  isUnreadable: boolean;
  onQuery(query: string): void;
  /** The list is to be narrowed to it. */
  onTake(query: string): void;
}

/** Where people type what they look for; it offers the words that it knows. */
function QueryBox({ query, isUnreadable, onQuery, onTake }: QueryBoxProps): ReactNode {
  const [isWriting, setWriting] = useState(false);
  const [at, setAt] = useState(-1);
  const offered = isWriting ? suggestionsFor(query) : [];
  const chosen = offered[at];
  const choose = (word: string) => {
    onQuery(withSuggestion(query, word));
    setAt(-1);
  };
  return (
    <div className="query">
      <label className="query-field">
        <Search className="icon" aria-hidden="true" />
        <span className="unseen">Search</span>
        <input
          data-filter
          type="search"
          role="combobox"
          aria-expanded={offered.length > 0}
          aria-controls="query-suggestions"
          aria-autocomplete="list"
          aria-activedescendant={chosen === undefined ? undefined : `suggestion-${at}`}
          value={query}
          placeholder="status:failed  path:etl/*  label.team:data  error:HTTP_429  started:<1h"
          spellCheck={false}
          autoComplete="off"
          aria-invalid={isUnreadable}
          aria-describedby={isUnreadable ? "search-problem" : undefined}
          onChange={(event) => {
            onQuery(event.target.value);
            setAt(-1);
          }}
          onKeyDown={(event) => {
            // Escape empties a search field and leaves it: what is not seen any more must not narrow the list.
            if (event.key === "Escape") flushSync(() => onQuery(""));
            const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (move !== undefined && offered.length > 0) {
              setAt(Math.max(-1, Math.min(offered.length - 1, at + move)));
              event.preventDefault();
            } else if (event.key === "Enter" && chosen !== undefined) {
              choose(chosen.word);
              event.preventDefault();
            }
          }}
          onFocus={() => setWriting(true)}
          onBlur={(event) => {
            setWriting(false);
            onTake(event.target.value);
          }}
        />
      </label>
      {offered.length > 0 && <Suggestions offered={offered} at={at} onChoose={choose} />}
    </div>
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
