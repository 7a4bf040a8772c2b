import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** A step's name that leads to it. */
export function StepLink({ name, failed = false }: { name: string; failed?: boolean }): ReactNode {
  return (
    <Link
      from="/executions/$executionId"
      to="."
      search={(before) => ({
        ...before,
        tab: undefined,
        step: name,
        in: undefined,
        command: undefined,
        iteration: undefined,
        failed: failed ? (true as const) : undefined,
      })}
    >
      {name}
    </Link>
  );
}
