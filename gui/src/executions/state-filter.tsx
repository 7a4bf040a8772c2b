import type { ReactNode } from "react";
import { Status } from "../parts/status.tsx";

/** States in the order of a life. */
const STATES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"] as const;
/** Those that have not ended. */
export const OPEN_STATES = ["PENDING", "RUNNING", "PAUSED"] as const;

/** The states in a text of the address; empty for any. */
export function statesOf(status: string | undefined): string[] {
  const names = (status ?? "").toUpperCase().split(",");
  return STATES.filter((state) => names.includes(state));
}

/** Which states: any, those that are open, or any choice of them. */
export function StateFilter({
  status,
  onChange,
}: {
  status: string | undefined;
  onChange(status: string): void;
}): ReactNode {
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
        any
      </button>
      <button type="button" className="chip" aria-pressed={chosen.join() === open} onClick={() => onChange(open)}>
        open
      </button>
      {STATES.map((state) => (
        <button
          key={state}
          type="button"
          className="chip"
          aria-pressed={chosen.includes(state)}
          onClick={() => toggle(state)}
        >
          <Status of={state} />
        </button>
      ))}
    </fieldset>
  );
}
