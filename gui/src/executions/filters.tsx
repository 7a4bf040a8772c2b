import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";

const route = getRouteApi("/executions");
const STATES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"];
/** Times of which people ask. */
const SPANS: readonly (readonly [label: string, ms: number])[] = [
  ["the last hour", 3_600_000],
  ["the last day", 86_400_000],
  ["the last week", 604_800_000],
];

/** What the list is narrowed to; it stands in the address. */
export function Filters(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [path, setPath] = useState(search.path ?? "");
  useEffect(() => setPath(search.path ?? ""), [search.path]);
  const change = (values: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...values }), replace: true });
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        change({ path: path.trim() === "" ? undefined : path.trim() });
      }}
    >
      <label>
        Path
        <input
          data-filter
          value={path}
          placeholder="examples/hello"
          onChange={(event) => setPath(event.target.value)}
          onBlur={() => change({ path: path.trim() === "" ? undefined : path.trim() })}
        />
      </label>
      <label>
        Status
        <select value={search.status ?? ""} onChange={(event) => change({ status: event.target.value || undefined })}>
          <option value="">any</option>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {state.toLowerCase()}
            </option>
          ))}
        </select>
      </label>
      <label>
        Started in
        <select
          value={search.since === undefined ? "" : "kept"}
          onChange={(event) => {
            const ms = Number(event.target.value);
            change({ since: ms > 0 ? new Date(Date.now() - ms).toISOString() : undefined });
          }}
        >
          <option value="">all time</option>
          {search.since !== undefined && (
            <option value="kept">since {search.since.slice(0, 16).replace("T", " ")}</option>
          )}
          {SPANS.map(([label, ms]) => (
            <option key={ms} value={ms}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={search.view === "errors"}
          onChange={(event) =>
            change(event.target.checked ? { view: "errors", status: "FAILED" } : { view: undefined, status: undefined })
          }
        />
        Errors in groups
      </label>
    </form>
  );
}
