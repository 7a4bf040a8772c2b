import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { useTitle } from "../parts/title.ts";
import "../styles/operations.css";
import { overview } from "../api/queries.ts";
import { Findings } from "./findings.tsx";
import { diagnosis } from "./queries.ts";
import { Queue } from "./queue.tsx";
import { ReaperPart } from "./reaper.tsx";
import { Parts } from "./state.tsx";
import { VerdictPanel } from "./verdict.tsx";
import { Workers } from "./workers.tsx";

/** Why nothing is running: the answer and its remedy first, then the workers, the queue, and the parts. */
export function OperationsPage(): ReactNode {
  const seen = useQuery(overview());
  const examined = useQuery(diagnosis());
  const { data } = seen;
  useTitle(data === undefined ? "Workers & queues" : `${SIGNS[data.verdict.level]} Workers & queues`);
  const isOld = seen.isError && data !== undefined;
  return (
    <div className="stack operations">
      <div className="row spread">
        <h1>Workers &amp; queues</h1>
        {data !== undefined && (
          <p className="quiet" role={isOld ? "status" : undefined}>
            {isOld ? "What was so " : "As of "}
            <Ago at={new Date(seen.dataUpdatedAt).toISOString()} />
            {isOld && ": the server does not answer now"}
          </p>
        )}
      </div>
      {seen.isError && data === undefined && <ProblemPanel error={seen.error} again={() => void seen.refetch()} />}
      {seen.isPending && <p className="quiet">Asking the server …</p>}
      {data !== undefined && (
        <div className={isOld ? "stack old" : "stack"}>
          <VerdictPanel verdict={data.verdict} executions={data.executions} />
          <Workers workers={data.workers} />
          <Queue queue={data.queue} />
          <div className="cards">
            <ReaperPart reaper={data.reaper} />
            <Parts overview={data} />
          </div>
        </div>
      )}
      <Findings examined={examined} />
    </div>
  );
}

const SIGNS = { good: "✓", warn: "!", bad: "✕" } as const;
