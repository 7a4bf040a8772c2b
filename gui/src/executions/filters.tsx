import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { StateFilter } from "./state-filter.tsx";
import { TimeFilter } from "./time-filter.tsx";

const route = getRouteApi("/executions");

/** What the list is narrowed to; it stands in the address. */
export function Filters(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [path, setPath] = useState(search.path ?? "");
  useEffect(() => setPath(search.path ?? ""), [search.path]);
  const change = (values: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...values }), replace: true });
  const take = (text: string) => change({ path: text.trim() === "" ? undefined : text.trim() });
  return (
    <search className="stack filters">
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          take(path);
        }}
      >
        <label>
          Path
          <input
            data-filter
            type="search"
            value={path}
            placeholder="part of a path"
            onChange={(event) => setPath(event.target.value)}
            // Escape empties a search field and leaves it: what is not seen any more must not narrow the list.
            onKeyDown={({ key }) => key === "Escape" && flushSync(() => setPath(""))}
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
      {search.view !== "errors" && (
        <StateFilter status={search.status} onChange={(status) => change({ status: status || undefined })} />
      )}
    </search>
  );
}
