import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Execution, WaitingFor } from "../../api/types.ts";
import { SendSignal } from "./send-signal.tsx";

/** The button that brings what a step waits for: a signal, or a decision. A time comes by itself. */
export function EndWait({ execution, wait }: { execution: Execution; wait: WaitingFor }): ReactNode {
  if (wait.kind === "signal") return <SendSignal execution={execution} wait={wait} />;
  if (wait.approval_id === undefined) return null;
  return (
    <Link to="/inbox" search={{ approval: wait.approval_id }} className="button main" data-command="Decide">
      Decide …
    </Link>
  );
}
