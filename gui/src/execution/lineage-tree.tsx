import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { rerunChanges } from "../../../src/schema/inputs/rerun-changes.ts";
import { type Answer, api } from "../api/client.ts";
import type { Execution } from "../api/types.ts";
import { versionText } from "../parts/labels.tsx";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";

type Relative = Answer<"GET /api/executions/:execution_id/lineage">["descendants"][number];

/** How often it looks for news while the execution is open, milliseconds. */
const LOOK_MS = 5_000;
/** Deeper lines of the tree are not indented further. */
const INDENTED_MAX = 8;
const WORDS: Record<Relative["by"], string> = { parent: "called", rerun: "rerun", trigger: "triggered", hook: "hook" };

/** Where the execution comes from and what came from it, as a tree. */
export function Lineage({ execution }: { execution: Execution }): ReactNode {
  const { execution_id, ended_at } = execution;
  const pages = useInfiniteQuery({
    queryKey: ["lineage", execution_id],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/executions/:execution_id/lineage", {
        params: { execution_id },
        query: { limit: "100", ...(pageParam !== null && { cursor: pageParam }) },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ended_at === null ? LOOK_MS : false,
  });
  if (pages.isError && pages.data === undefined) {
    return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  }
  if (pages.data === undefined) return <p className="quiet">Loading …</p>;
  const [first] = pages.data.pages;
  const own = first?.changed === undefined ? execution : { ...execution, changed: first.changed };
  const descendants = pages.data.pages.flatMap((page) => page.descendants);
  const rows = rowsOf(own, first?.ancestors ?? [], descendants);
  return (
    <section className="panel stack" aria-label="Lineage">
      {rows.length === 1 && <p>No other execution called or repeats it, and it has called none.</p>}
      <ul className="lineage">
        {rows.map((row) => (
          <Line key={row.one.execution_id} row={row} isOwn={row.one.execution_id === execution_id} />
        ))}
      </ul>
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </section>
  );
}

interface Row {
  one: Pick<Relative, "execution_id" | "path" | "version" | "status" | "started_at" | "deleted_at" | "changed">;
  depth: number;
  by: Relative["by"] | undefined;
}

function rowsOf(own: Row["one"], ancestors: readonly Relative[], descendants: readonly Relative[]): Row[] {
  const rows: Row[] = [];
  // How an ancestor's successor came from it stands with the ancestor.
  let by: Row["by"];
  for (const one of ancestors.toReversed()) {
    rows.push({ one, depth: rows.length, by });
    by = one.by;
  }
  const depth = rows.length;
  const depths = new Map([[own.execution_id, depth]]);
  rows.push({ one: own, depth, by });
  for (const one of descendants) {
    const below = ((one.of === null ? undefined : depths.get(one.of)) ?? depth) + 1;
    depths.set(one.execution_id, below);
    rows.push({ one, depth: below, by: one.by });
  }
  return rows;
}

function Line({ row: { one, depth, by }, isOwn }: { row: Row; isOwn: boolean }): ReactNode {
  const { execution_id: id, path, version, status, started_at, deleted_at, changed } = one;
  const name = (
    <>
      {path} <span className="quiet">{versionText(version)}</span>
    </>
  );
  return (
    <li style={{ paddingLeft: `${Math.min(depth, INDENTED_MAX) * 1.5}rem` }} aria-current={isOwn ? "true" : undefined}>
      {by !== undefined && <span className="quiet">{WORDS[by]}</span>}
      <Status of={status} />
      {isOwn || deleted_at !== undefined ? (
        <span className="wrap">{name}</span>
      ) : (
        <Link to="/executions/$executionId" params={{ executionId: id }} search={{ tab: "lineage" }} className="wrap">
          {name}
        </Link>
      )}
      <span className="mono quiet">{id}</span>
      {deleted_at !== undefined && <span className="quiet">deleted</span>}
      {started_at !== null && (
        <span className="quiet">
          <Ago at={started_at} />
        </span>
      )}
      {changed !== undefined && <span className="quiet wrap">{rerunChanges(changed)}</span>}
      {isOwn && <span className="quiet">this one</span>}
    </li>
  );
}
