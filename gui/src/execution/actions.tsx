import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import type { Execution } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { ReasonButton } from "../parts/reason-button.tsx";
import { isFinal } from "../parts/status.tsx";
import { shellCommands } from "./commands.ts";
import { Rerun } from "./steering/rerun.tsx";
import { Pause } from "./summary/pause.tsx";

/** What can be done with an execution. */
export function Actions({ execution }: { execution: Execution }): ReactNode {
  const navigate = useNavigate();
  const mayRun = useAllowed("execute", { path: execution.path });
  const again = useMutation({
    mutationFn: () =>
      api("POST /api/execute", {
        body: {
          path: execution.path,
          version: execution.version,
          workload: execution.workload as Record<string, never>,
        },
      }),
    onSuccess: ({ execution_id }) =>
      void navigate({ to: "/executions/$executionId", params: { executionId: execution_id } }),
  });
  return (
    <div className="row actions">
      {again.isError && (
        <span role="alert" className="tone-bad">
          {again.error.message}
        </span>
      )}
      {isFinal(execution.status) ? (
        <Rerun execution={execution} />
      ) : (
        <AllowedButton
          may={mayRun}
          title="With the same version and the same inputs"
          disabled={again.isPending}
          onClick={() => again.mutate()}
        >
          Run again
        </AllowedButton>
      )}
      <Link
        className="button"
        to="/entry/$"
        params={{ _splat: execution.path }}
        // The form of the run reads it: its inputs begin with those of this execution.
        search={{ version: String(execution.version), from: execution.execution_id }}
      >
        With other inputs …
      </Link>
      {!isFinal(execution.status) && execution.status !== "PAUSED" && (
        <Pause executionId={execution.execution_id} path={execution.path} />
      )}
      {!isFinal(execution.status) && <Cancel executionId={execution.execution_id} path={execution.path} />}
      <details className="menu">
        <summary className="button">Copy as</summary>
        <div className="panel stack">
          <CopyButton label="link" text={() => location.href} />
          <CopyButton label="JSON" text={() => JSON.stringify(execution, null, 2)} />
          {shellCommands(execution).map(({ label, text }) => (
            <CopyButton key={label} label={label} text={text} />
          ))}
        </div>
      </details>
    </div>
  );
}

function Cancel({ executionId, path }: { executionId: string; path: string }): ReactNode {
  const may = useAllowed("execute", { path, to: "cancel" });
  return (
    <ReasonButton
      may={may}
      isRisky
      button="Cancel …"
      title="Cancel this execution?"
      explanation="What runs is told to stop, and what it has called is cancelled too. This cannot be taken back."
      label="Reason"
      placeholder="Stands in the log"
      submit="Cancel it"
      submitting="Cancelling …"
      act={(reason) =>
        api("POST /api/executions/:execution_id/cancel", {
          params: { execution_id: executionId },
          body: reason === "" ? {} : { reason },
        })
      }
      onDone={() => void queries.invalidateQueries({ queryKey: ["execution", executionId] })}
    />
  );
}
