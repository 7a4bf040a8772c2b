import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ProblemPanel } from "../parts/problem.tsx";
import { momentText } from "../parts/time.ts";
import { type AuditFilters, auditList } from "./queries.ts";

const RESULTS = ["allow", "deny", "error"] as const;

/** Who did what, what decided, and how it ended. */
export function AuditLog(): ReactNode {
  const [filters, setFilters] = useState<AuditFilters>({});
  const pages = useInfiniteQuery(auditList(filters));
  const entries = pages.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <div className="stack">
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const value = (name: string) => String(form.get(name) ?? "").trim() || undefined;
          setFilters({
            actor: value("actor"),
            resource: value("resource"),
            result: RESULTS.find((result) => result === value("result")),
          });
        }}
      >
        <label>
          Who
          <input data-filter name="actor" placeholder="name@example.com" />
        </label>
        <label>
          On what
          <input name="resource" placeholder="playbook/team/report" />
        </label>
        <label>
          Result
          <select name="result">
            <option value="">any</option>
            {RESULTS.map((result) => (
              <option key={result}>{result}</option>
            ))}
          </select>
        </label>
        <button type="submit">Show</button>
      </form>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && entries.length === 0 && <p className="panel">Nothing in the log is like this.</p>}
      {entries.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>When</th>
                <th>Who</th>
                <th>Did</th>
                <th>On what</th>
                <th>Result</th>
                <th className="wide">By which rule</th>
                <th className="wide">From</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.audit_id}>
                  <td className="number">{momentText(Date.parse(entry.at))}</td>
                  <td>{entry.actor ?? entry.actor_kind}</td>
                  <td>{entry.action}</td>
                  <td className="mono wrap">{entry.resource}</td>
                  <td className={`tone-${entry.result === "allow" ? "good" : "bad"} status`}>{entry.result}</td>
                  <td className="wide">{entry.rule}</td>
                  <td className="wide">{entry.address}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          Older ones
        </button>
      )}
    </div>
  );
}
