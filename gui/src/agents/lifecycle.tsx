import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api } from "../api/client.ts";
import { useIdempotencyKey } from "../api/idempotency.ts";
import { executionDetail } from "../api/queries.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { JsonView } from "../parts/json/view.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { isFinal, Status } from "../parts/status.tsx";
import type { McpServer } from "./servers.ts";

/** A button for each playbook that looks after a server. */
export function Lifecycle({ server }: { server: McpServer }): ReactNode {
  const [pending, setPending] = useState<readonly [action: string, playbook: string]>();
  const key = useIdempotencyKey();
  const dispatch = useMutation({
    mutationFn: ([action]: readonly [string, string]) => {
      const path = { resource_path: server.path, action };
      const headers = key.of(path);
      return api("POST /api/mcp/mcp/:resource_path{.+}/lifecycle/:action", { params: path, body: {}, headers });
    },
    onSuccess: () => key.answered(),
    onSettled: () => setPending(undefined),
  });
  if (server.lifecycle.length === 0) {
    return (
      <p className="quiet">
        It has no <code>spec.lifecycle</code>, so it cannot be deployed or stopped from here.
      </p>
    );
  }
  return (
    <div className="stack tight">
      <h3>Lifecycle</h3>
      <div className="row">
        {server.lifecycle.map((one) => (
          <ActionButton key={one[0]} one={one} isBusy={dispatch.isPending} onAsk={setPending} />
        ))}
      </div>
      {pending !== undefined && (
        <ConfirmDialog
          title={`Run '${pending[0]}' for ${server.path}?`}
          action={`Run ${pending[0]}`}
          isBusy={dispatch.isPending}
          onConfirm={() => dispatch.mutate(pending)}
          onClose={() => setPending(undefined)}
        >
          <p>
            It starts the playbook <code className="wrap">{pending[1]}</code> with the server's path and address.
          </p>
        </ConfirmDialog>
      )}
      {dispatch.isError && (
        <>
          <ProblemPanel error={dispatch.error} />
          <p>
            '{dispatch.variables[0]}' runs the playbook{" "}
            <Link to="/entry/$" params={{ _splat: dispatch.variables[1] }}>
              {dispatch.variables[1]}
            </Link>
            , which must be registered.
          </p>
        </>
      )}
      {dispatch.data !== undefined && (
        <Dispatched
          action={dispatch.data.action}
          executionId={dispatch.data.execution_id}
          key={dispatch.data.execution_id}
        />
      )}
    </div>
  );
}

type Action = readonly [action: string, playbook: string];

function ActionButton({ one, isBusy, onAsk }: { one: Action; isBusy: boolean; onAsk(one: Action): void }): ReactNode {
  const may = useAllowed("execute", { path: one[1] });
  return (
    <AllowedButton may={may} disabled={isBusy} onClick={() => onAsk(one)}>
      {one[0]} …
    </AllowedButton>
  );
}

/** How often an action's execution is looked at until it ends, milliseconds. */
const LOOK_MS = 1_500;

function Dispatched({ action, executionId }: { action: string; executionId: string }): ReactNode {
  const execution = useQuery({
    ...executionDetail(executionId),
    refetchInterval: ({ state }) => (state.data !== undefined && isFinal(state.data.status) ? false : LOOK_MS),
  });
  return (
    <section className="stack tight" aria-live="polite">
      <p className="row">
        {action} <Status of={execution.data?.status ?? "PENDING"} />
        <Link to="/executions/$executionId" params={{ executionId }}>
          Execution {executionId}
        </Link>
      </p>
      {execution.data?.error != null && <p className="problem wrap">{execution.data.error.message}</p>}
      {execution.data !== undefined && isFinal(execution.data.status) && (
        <JsonView label="Result" value={execution.data.result ?? null} />
      )}
    </section>
  );
}
