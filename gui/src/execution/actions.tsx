import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useRef, useState } from "react";
import { answerOf, api } from "../api/client.ts";
import { addressOf } from "../api/session.ts";
import type { Execution } from "../api/types.ts";
import { queries } from "../app/queries.ts";
import { CopyButton } from "../parts/copy.tsx";
import { isFinal } from "../parts/status.tsx";

/** What can be done with an execution. */
export function Actions({ execution }: { execution: Execution }): ReactNode {
  const navigate = useNavigate();
  const again = useMutation({
    mutationFn: () =>
      answerOf(
        api.POST("/api/execute", {
          body: {
            path: execution.path,
            version: execution.version,
            workload: execution.workload as Record<string, never>,
          },
        }),
      ),
    onSuccess: ({ execution_id }) =>
      void navigate({ to: "/executions/$executionId", params: { executionId: execution_id } }),
  });
  const id = execution.execution_id;
  return (
    <div className="row">
      {again.isError && (
        <span role="alert" className="tone-bad">
          {again.error.message}
        </span>
      )}
      <button type="button" disabled={again.isPending} onClick={() => again.mutate()}>
        Run again
      </button>
      {!isFinal(execution.status) && <Cancel executionId={id} />}
      <details className="menu">
        <summary className="button">Copy as</summary>
        <div className="panel stack">
          <CopyButton label="link" text={location.href} />
          <CopyButton label="JSON" text={JSON.stringify(execution, null, 2)} />
          <CopyButton label="flow status" text={`flow status ${id}`} />
          <CopyButton label="curl" text={`curl -s '${location.origin}${addressOf(`/api/executions/${id}`)}'`} />
        </div>
      </details>
    </div>
  );
}

function Cancel({ executionId }: { executionId: string }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const cancel = useMutation({
    mutationFn: () =>
      answerOf(
        api.POST("/api/executions/{execution_id}/cancel", {
          params: { path: { execution_id: executionId } },
          body: reason === "" ? {} : { reason },
        }),
      ),
    onSuccess: () => {
      dialog.current?.close();
      void queries.invalidateQueries({ queryKey: ["execution", executionId] });
    },
  });
  return (
    <>
      <button type="button" className="risky" onClick={() => dialog.current?.showModal()}>
        Cancel …
      </button>
      <dialog ref={dialog} aria-labelledby="cancel-one">
        <div className="stack">
          <h1 id="cancel-one">Cancel this execution?</h1>
          <p>What runs is told to stop, and what it has called is cancelled too. This cannot be taken back.</p>
          <label>
            Reason
            <input value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
          </label>
          {cancel.isError && <p role="alert">{cancel.error.message}</p>}
          <div className="row">
            <button type="button" className="risky" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
              Cancel it
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Close
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
