import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import type { ExecutionItem } from "../api/types.ts";
import { useKeys } from "../parts/use-keys.ts";

/** What the keys work on. */
export interface RowKeys {
  rows: readonly ExecutionItem[];
  /** The row that the keys are at. */
  at: string | undefined;
  onAt(executionId: string | undefined): void;
  toggle(executionId: string): void;
  /** Brings the row of an execution into sight. */
  show(executionId: string): void;
}

/** `j` and `k` go through the rows, Enter opens one, `x` marks it, Escape leaves them. The row is known by its id: rows that come do not move it. */
export function useRowKeys({ rows, at, onAt, toggle, show }: RowKeys): void {
  const navigate = useNavigate();
  useKeys((event) => {
    const index = rows.findIndex(({ execution_id: id }) => id === at);
    const row = rows[index];
    if (event.key === "j" || event.key === "k") {
      const next = index === -1 ? 0 : Math.max(0, Math.min(rows.length - 1, index + (event.key === "j" ? 1 : -1)));
      const id = rows[next]?.execution_id;
      onAt(id);
      if (id !== undefined) show(id);
    } else if (row === undefined) return;
    else if (event.key === "Escape") onAt(undefined);
    else if (event.key === "x") toggle(row.execution_id);
    else if (event.key === "Enter" && !isControl(event.target)) {
      void navigate({ to: "/executions/$executionId", params: { executionId: row.execution_id } });
    }
  });
  useEffect(() => {
    // Focus of a screen reader counts as being at the row too.
    if (at !== undefined)
      document.querySelector<HTMLElement>(`[data-row="${at}"] a.open`)?.focus({ preventScroll: true });
  }, [at]);
}

/** Whether Enter means something here already. */
function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary") !== null;
}
