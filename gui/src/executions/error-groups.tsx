import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { useTitle } from "../parts/title.ts";
import { type ExecutionFilters, executionPage } from "./filter/queries.ts";
import { type ErrorGroup, type Failures, NO_FAILURES, withFailures } from "./groups.ts";

/** Failures that are looked at, and how many of one call. */
const LOOKED_MAX = 5_000;
const LOOKED_AT_ONCE = 500;

interface Found extends Failures {
  /** All failures were looked at, or as many as there may be. */
  end: "all" | "most" | undefined;
  error?: unknown;
}

/** What goes wrong, and how often, over the newest failures of the filter. */
export function ErrorGroups({ filters }: { filters: ExecutionFilters }): ReactNode {
  const [round, setRound] = useState(0);
  const found = useFailures(filters, round);
  const { groups, looked, end, error } = found;
  useTitle(end === undefined ? "Errors" : `${groups.length} ${groups.length === 1 ? "kind" : "kinds"} of error`);
  return (
    <div className="stack">
      <div className="row">
        <p className="quiet" role="status">
          {end === undefined && error === undefined
            ? `Looking … ${looked.toLocaleString("en")} failures so far`
            : foundText(found)}
        </p>
        <button
          type="button"
          disabled={end === undefined && error === undefined}
          onClick={() => setRound((before) => before + 1)}
        >
          Look again
        </button>
      </div>
      {error !== undefined && <ProblemPanel error={error} again={() => setRound((before) => before + 1)} />}
      {end !== undefined && groups.length === 0 && <p className="panel">No matching execution has failed.</p>}
      {groups.map((group) => (
        <Group key={group.key} group={group} />
      ))}
    </div>
  );
}

/** `4 kinds of error in 12 failed executions, 3 of which failed because of a sub-playbook`. */
function foundText({ groups, looked, end }: Found): string {
  const callers = groups.reduce((sum, group) => sum + group.callers, 0);
  const kinds = `${groups.length} ${groups.length === 1 ? "kind" : "kinds"} of error`;
  const of = `${end === "most" ? "the newest " : ""}${looked.toLocaleString("en")} failed ${looked === 1 ? "execution" : "executions"}`;
  if (callers === 0) return `${kinds} in ${of}`;
  return `${kinds} in ${of}, ${callers.toLocaleString("en")} of which failed because of what ${callers === 1 ? "it" : "they"} called`;
}

function Group({ group }: { group: ErrorGroup }): ReactNode {
  const { code, step, message, count, first, last, samples, paths, callers } = group;
  return (
    <section className="panel tone-bad error-group" data-part="error-group">
      <h2 className="wrap">
        <span className="number">{count.toLocaleString("en")} ×</span> <code>{code}</code>
        {step !== undefined && <> in {step}</>}
      </h2>
      <p className="wrap clipped">{message}</p>
      <p className="quiet wrap">
        {count === 1 ? "Began " : "Last began "}
        <Ago at={last} />
        {count > 1 && (
          <>
            , first <Ago at={first} />
          </>
        )}
        {" · "}
        {[...paths]
          .slice(0, 4)
          .map(([path, of]) => (paths.size === 1 ? path : `${path} (${of})`))
          .join(", ")}
        {paths.size > 4 && ` and ${paths.size - 4} more`}
        {callers > 0 && ` · ${callers.toLocaleString("en")} that called ${count === 1 ? "it" : "them"} failed too`}
      </p>
      <p className="row">
        <span className="quiet">{count === 1 ? "Open it" : "The newest"}</span>
        {samples.map(({ id, startedAt, path }) => (
          <span key={id} title={path}>
            <Link to="/executions/$executionId" params={{ executionId: id }} className="mono">
              {id}
            </Link>{" "}
            <span className="quiet">
              <Ago at={startedAt} />
            </span>
          </span>
        ))}
      </p>
    </section>
  );
}

/** Reads failures page by page and keeps their groups alone. */
function useFailures(filters: ExecutionFilters, round: number): Found {
  const [found, setFound] = useState<Found>({ ...NO_FAILURES, end: undefined });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a further round reads the same again
  useEffect(() => {
    const ended = new AbortController();
    const read = async () => {
      let failures = NO_FAILURES;
      let cursor: string | null = null;
      do {
        const page = await executionPage({ ...filters, status: "FAILED" }, cursor, LOOKED_AT_ONCE, ended.signal);
        failures = withFailures(failures, page.executions);
        cursor = page.next_cursor;
        const end = cursor === null ? "all" : failures.looked >= LOOKED_MAX ? "most" : undefined;
        setFound({ ...failures, end });
        if (end === "most") return;
      } while (cursor !== null);
    };
    setFound({ ...NO_FAILURES, end: undefined });
    read().catch((error: unknown) => {
      if (!ended.signal.aborted) setFound((before) => ({ ...before, error }));
    });
    return () => ended.abort();
  }, [filters, round]);
  return found;
}
