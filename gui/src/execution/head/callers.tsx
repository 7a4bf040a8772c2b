import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { executionDetail } from "../../api/queries.ts";

/** Callers that are named: a chain of them is rarely longer, and each costs a call. */
const CALLERS_MAX = 5;

/** The callers of an execution, from the root of the tree down to it. */
export function Callers({ parentId, level = 1 }: { parentId: string; level?: number }): ReactNode {
  const parent = useQuery({ ...executionDetail(parentId), staleTime: 60_000 });
  const above = parent.data?.parent_execution_id;
  return (
    <>
      {above != null &&
        (level < CALLERS_MAX ? <Callers parentId={above} level={level + 1} /> : <span aria-hidden="true">… › </span>)}
      <Link to="/executions/$executionId" params={{ executionId: parentId }} title={`Execution ${parentId}`}>
        {parent.data?.path ?? parentId}
      </Link>
      <span aria-hidden="true"> › </span>
    </>
  );
}
