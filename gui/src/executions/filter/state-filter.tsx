import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../api/client.ts";
import { Status } from "../../parts/status.tsx";
import { type ExecutionFilters, executionCounts } from "./queries.ts";

/** States in the order of a life. */
const STATES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"] as const;
/** Those that have not ended. */
export const OPEN_STATES = ["PENDING", "RUNNING", "PAUSED"] as const;

/** The states in a text of the address; empty for any. */
export function statesOf(status: string | undefined): string[] {
  const names = (status ?? "").toUpperCase().split(",");
  return STATES.filter((state) => names.includes(state));
}

/** Which states: all, those that are open, or any choice of them; each with how many there are. */
export function StateFilter({
  filters,
  status,
  onChange,
}: {
  filters: ExecutionFilters;
  status: string | undefined;
  onChange(status: string): void;
}): ReactNode {
  const { data } = useQuery(executionCounts(filters));
  const chosen = statesOf(status);
  const open = OPEN_STATES.join(",");
  const toggle = (state: string) => {
    const next = STATES.filter((one) => (one === state) !== chosen.includes(one));
    onChange(next.length === STATES.length ? "" : next.join(","));
  };
  return (
    <fieldset className="row chips">
      <legend className="unseen">States</legend>
      <button type="button" className="chip" aria-pressed={chosen.length === 0} onClick={() => onChange("")}>
        All <Count of={STATES} counts={data?.counts} />
      </button>
      <button type="button" className="chip" aria-pressed={chosen.join() === open} onClick={() => onChange(open)}>
        Open <Count of={OPEN_STATES} counts={data?.counts} />
      </button>
      {STATES.map((state) => (
        <button
          key={state}
          type="button"
          className="chip"
          aria-pressed={chosen.includes(state)}
          onClick={() => toggle(state)}
        >
          <Status of={state} /> <Count of={[state]} counts={data?.counts} />
        </button>
      ))}
    </fieldset>
  );
}

/** `12K`: eight of them stand in a row. */
const SHORT = new Intl.NumberFormat("en", { notation: "compact" });

type Counts = Answer<"GET /api/executions/counts">["counts"];

/** How many there are of some states, `1K+` where not all were counted. Its place is kept while that is not known. */
function Count({ of, counts }: { of: readonly (typeof STATES)[number][]; counts: Counts | undefined }): ReactNode {
  if (counts === undefined) return <span className="count" />;
  const found = of.flatMap((state) => counts[state] ?? []);
  const sum = found.reduce((before, { count }) => before + count, 0);
  return (
    <span className="count" title={sum.toLocaleString("en")}>
      {SHORT.format(sum)}
      {found.some(({ more }) => more) && "+"}
    </span>
  );
}
