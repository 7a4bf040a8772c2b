import type { ReactNode } from "react";
import { Problem } from "../api/problem.ts";

/** Why a part of the page has nothing to show, and what to do. */
export function ProblemPanel({ error, again }: { error: unknown; again?: () => void }): ReactNode {
  const problem = error instanceof Problem ? error : undefined;
  return (
    <section className="panel tone-bad" role="alert">
      <h2>{titleOf(problem)}</h2>
      <p className="wrap">{error instanceof Error ? error.message : String(error)}</p>
      {problem?.requestId !== undefined && (
        <p className="quiet">
          Request <code>{problem.requestId}</code>: the server's log has it under this number.
        </p>
      )}
      {again !== undefined && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </section>
  );
}

function titleOf(problem: Problem | undefined): string {
  if (problem === undefined) return "This page has a fault";
  if (problem.status === 0) return "The server does not answer";
  if (problem.status === 401) return "You are not logged in";
  if (problem.status === 403) return "You may not see this";
  if (problem.status === 404) return "There is nothing here";
  return problem.status >= 500 ? "The server could not answer" : "The server refused this";
}
