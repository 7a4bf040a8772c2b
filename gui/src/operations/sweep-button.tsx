import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { answerOf, api } from "../api/client.ts";
import { queries } from "../app/queries.ts";

/** Has the reaper look for stranded commands now. It publishes them again and changes no status. */
export function SweepButton(): ReactNode {
  const sweep = useMutation({
    mutationFn: () => answerOf(api.POST("/api/admin/command_reaper/sweep", {})),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["diagnosis"] }),
  });
  return (
    <>
      <span role="status">
        {sweep.isSuccess &&
          `${sweep.data.total} commands published again${sweep.data.more ? ", there may be more" : ""}`}
        {sweep.isError && sweep.error.message}
      </span>
      <button type="button" disabled={sweep.isPending} onClick={() => sweep.mutate()}>
        Sweep stranded commands
      </button>
    </>
  );
}
