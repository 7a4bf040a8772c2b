import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { queries } from "../../api/queries.ts";
import type { Execution } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { ReasonButton } from "../../parts/reason-button.tsx";

const renew = (executionId: string) => void queries.invalidateQueries({ queryKey: ["execution", executionId] });

/** The button that pauses an open execution. */
export function Pause({ executionId, path }: { executionId: string; path: string }): ReactNode {
  const may = useAllowed("execute", { path, to: "pause" });
  return (
    <ReasonButton
      may={may}
      button="Pause …"
      title="Pause this execution?"
      explanation="No further step begins, here or in what it has called. What workers are doing is finished and recorded. Time limits run on."
      label="Why"
      placeholder="Shown to everyone who looks at it"
      submit="Pause it"
      submitting="Pausing …"
      act={(reason) =>
        api("POST /api/executions/:execution_id/pause", {
          params: { execution_id: executionId },
          body: reason === "" ? {} : { reason },
        })
      }
      onDone={() => renew(executionId)}
    />
  );
}

/** The button that lets a paused execution go on. */
export function Resume({ execution, look = "" }: { execution: Execution; look?: string }): ReactNode {
  const { execution_id: executionId, path } = execution;
  const may = useAllowed("execute", { path, to: "resume" });
  const resume = useMutation({
    mutationFn: () =>
      api("POST /api/executions/:execution_id/resume", { params: { execution_id: executionId }, body: {} }),
    onSuccess: () => renew(executionId),
  });
  return (
    <>
      <AllowedButton may={may} className={look} disabled={resume.isPending} onClick={() => resume.mutate()}>
        {resume.isPending ? "Resuming …" : "Resume"}
      </AllowedButton>
      {resume.isError && (
        <span role="alert" className="tone-bad wrap">
          {resume.error.message}
        </span>
      )}
    </>
  );
}
