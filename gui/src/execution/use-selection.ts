import { getRouteApi } from "@tanstack/react-router";
import type { Execution } from "../api/types.ts";
import { mostTelling } from "./traced/most-telling.ts";

const route = getRouteApi("/executions/$executionId");

/** What is chosen on the page of an execution, the same in each of its views: it stands in the address. */
export function useSelection(execution: Execution) {
  // Only what chooses: another view or stretch of time draws nothing anew here.
  const {
    step,
    command,
    iteration,
    in: inId,
    failed,
    run,
    beside,
  } = route.useSearch({
    select: ({ step, command, iteration, in: inId, failed, run, beside }) => ({
      ...{ step, command, iteration, in: inId, failed, run, beside },
    }),
    structuralSharing: true,
  });
  const navigate = route.useNavigate();
  return {
    /** What was chosen; before anything was, what tells most. */
    step: step ?? mostTelling(execution.steps),
    isOwnChoice: step !== undefined,
    command,
    iteration,
    /** The execution, among those that were called, whose step it is; undefined: that of the page. */
    in: inId,
    isFailed: failed === true,
    run,
    beside,
    choose(to: { step: string; command: string | undefined; iteration: string | undefined; in: string | undefined }) {
      void navigate({
        search: (before) => ({ ...before, ...to, run: undefined, beside: undefined }),
        replace: true,
        resetScroll: false,
      });
    },
    showFailed(isShown: boolean) {
      void navigate({
        search: (before) => ({ ...before, failed: isShown ? (true as const) : undefined }),
        replace: true,
        resetScroll: false,
      });
    },
  };
}
