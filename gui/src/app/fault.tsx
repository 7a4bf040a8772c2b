import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Problem } from "../api/problem.ts";
import { ProblemPanel } from "../parts/problem.tsx";

/** What browsers say when a file of the page is not there any more: the server was updated meanwhile. */
const FILE_GONE = /dynamically imported module|importing a module script failed|unable to preload css/i;

/** Where a page should be that failed while it was shown. */
export function FaultPage({ error, reset }: { error: unknown; reset(): void }): ReactNode {
  if (error instanceof Error && FILE_GONE.test(error.message)) {
    return (
      <section className="panel stack tone-warn" role="alert">
        <h1>This page has to be loaded anew</h1>
        <p>A part of it could not be loaded: the server was updated, or cannot be reached at the moment.</p>
        <div className="row">
          <button type="button" className="main" onClick={() => location.reload()}>
            Load it anew
          </button>
        </div>
      </section>
    );
  }
  return <ProblemPanel error={error} again={reset} />;
}

/** For an address that is none. */
export function NoSuchPage(): ReactNode {
  return (
    <div className="stack">
      <ProblemPanel error={new Problem(404, "NOT_FOUND", `No page has the address ${location.pathname}`)} />
      <p>
        Go to the <Link to="/executions">executions</Link>, the <Link to="/catalog">catalog</Link> or{" "}
        <Link to="/operations">operations</Link>.
      </p>
    </div>
  );
}
