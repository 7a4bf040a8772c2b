import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { api } from "../api/client.ts";
import { me, queries } from "../api/queries.ts";

/** What the server asks of a user for this. */
const NEEDS = "view_operations";

/** Has the reaper look for stranded commands now. It publishes them again and changes no status. */
export function SweepButton(): ReactNode {
  const who = useQuery(me());
  const why = useId();
  const lacks = who.data?.kind === "user" && !who.data.permissions.includes(NEEDS);
  const sweep = useMutation({
    mutationFn: () => api("POST /api/admin/command_reaper/sweep"),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["overview"] });
      void queries.invalidateQueries({ queryKey: ["diagnosis"] });
    },
  });
  return (
    <>
      <button
        type="button"
        disabled={sweep.isPending || lacks}
        aria-describedby={lacks ? why : undefined}
        onClick={() => sweep.mutate()}
      >
        {sweep.isPending ? "Sweeping …" : "Sweep now"}
      </button>
      {lacks && (
        <span id={why} className="quiet">
          needs the permission {NEEDS}
        </span>
      )}
      <span role="status" className={sweep.isError ? "tone-bad status wrap" : "quiet"}>
        {sweep.isSuccess &&
          (sweep.data.total === 0
            ? "No stranded work"
            : `${sweep.data.total} told again${sweep.data.more ? ", there may be more: sweep again" : ""}`)}
        {sweep.isError && sweep.error.message}
      </span>
    </>
  );
}
