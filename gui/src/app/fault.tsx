import { Link } from "@tanstack/react-router";
import { type ReactNode, useSyncExternalStore } from "react";
import { Problem } from "../api/problem.ts";
import { onReach, unreachableSince } from "../api/reach.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { PartMissing } from "./lazy-page.ts";

/** Where a page should be that failed while it was shown. */
export function FaultPage({ error, reset }: { error: unknown; reset(): void }): ReactNode {
  const isGone = useSyncExternalStore(onReach, unreachableSince) !== undefined;
  if (!(error instanceof PartMissing)) return <ProblemPanel error={error} again={reset} />;
  return (
    <section className="panel stack tone-warn" role="alert">
      <h1>{error.message}</h1>
      <p>
        {isGone
          ? "The server is not responding. Reload this page once it is back; other open pages keep showing what they have loaded."
          : "The server was updated, or could not be reached for a moment. Reload the page."}
      </p>
      <div className="row">
        <button type="button" className="main" disabled={isGone} onClick={() => location.reload()}>
          Reload the page
        </button>
      </div>
    </section>
  );
}

/** For an unknown address. */
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
