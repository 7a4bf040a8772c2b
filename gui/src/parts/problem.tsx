import type { ReactNode } from "react";
import { Problem } from "../api/problem.ts";
import { CopyButton } from "./copy.tsx";

/** Why a part of the page has nothing to show, and what to do. */
export function ProblemPanel({ error, again }: { error: unknown; again?: () => void }): ReactNode {
  const problem = error instanceof Problem ? error : undefined;
  const [title, todo] = wordsOf(problem);
  const message = error instanceof Error ? error.message : String(error);
  return (
    <section className="panel stack tone-bad" role="alert" data-part="problem">
      <h2>{title}</h2>
      <p className="wrap clipped">{message}</p>
      <p>{todo}</p>
      {problem?.requestId !== undefined && (
        <p className="quiet">
          Request <code>{problem.requestId}</code>: the server's log has it under this number.
        </p>
      )}
      <div className="row">
        {again !== undefined && (
          <button type="button" onClick={again}>
            Try again
          </button>
        )}
        <CopyButton label="Copy the details" text={detailsOf(error, problem, title)} />
      </div>
    </section>
  );
}

/** What happened, and what to do. */
function wordsOf(problem: Problem | undefined): [title: string, todo: string] {
  if (problem === undefined) {
    return [
      "This page has a fault",
      "Try again, or load the page anew. If it comes back, report it with these details.",
    ];
  }
  switch (problem.status) {
    case 0:
      return ["The server is not responding", "You need not do anything: the page continues once it responds."];
    case 401:
      return ["You are not logged in", "Log in again. You will return to this page."];
    case 403:
      return [
        "You may not see this",
        "Ask an administrator for the permission named above. A new role takes effect at once.",
      ];
    case 404:
      return ["Page not found", "It was deleted, or the address is wrong."];
    case 503:
      return ["The server cannot work at the moment", "The page retries. Workers & queues shows what is wrong."];
    default:
      return problem.status >= 500
        ? ["The server could not answer", "Try again. If it comes back, its log has the reason."]
        : ["The server refused this", "Change what it names, and try again."];
  }
}

/** Text for a report to the operator. It contains no token and no body. */
function detailsOf(error: unknown, problem: Problem | undefined, title: string): string {
  const lines = [
    title,
    error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    ...(problem === undefined ? [] : [`status ${problem.status}, code ${problem.code}`]),
    ...(problem?.requestId === undefined ? [] : [`request ${problem.requestId}`]),
    `page ${location.pathname}${location.search}`,
    `at ${new Date().toISOString()}`,
    navigator.userAgent,
    ...(problem === undefined && error instanceof Error && error.stack !== undefined ? [error.stack] : []),
  ];
  return lines.join("\n");
}
