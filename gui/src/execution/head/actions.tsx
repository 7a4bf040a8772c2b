import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Copy, Ellipsis } from "lucide-react";
import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { queries } from "../../api/queries.ts";
import type { Execution } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Menu } from "../../parts/menu.tsx";
import { ReasonButton } from "../../parts/reason-button.tsx";
import { isFinal } from "../../parts/status.tsx";
import { Pause, Resume } from "../steering/pause.tsx";
import { Rerun } from "../steering/rerun.tsx";
import { shellCommands } from "./commands.ts";

/** What can be done with an execution, in the order of use; what cannot be taken back stands last. */
export function Actions({ execution }: { execution: Execution }): ReactNode {
  const isOver = isFinal(execution.status);
  const isPaused = execution.status === "PAUSED";
  return (
    <div className="row actions">
      {isOver && <Rerun execution={execution} look="main" />}
      {isPaused && <Resume execution={execution} look="main" />}
      {!isOver && !isPaused && <Pause executionId={execution.execution_id} path={execution.path} />}
      <CopyMenu execution={execution} />
      <More execution={execution} />
      {!isOver && <Cancel executionId={execution.execution_id} path={execution.path} />}
    </div>
  );
}

function CopyMenu({ execution }: { execution: Execution }): ReactNode {
  return (
    <Menu
      label={
        <>
          <Copy className="icon" aria-hidden="true" /> Copy as …
        </>
      }
    >
      <CopyButton label="link" text={() => location.href} />
      <CopyButton label="JSON" text={() => JSON.stringify(execution, null, 2)} />
      {shellCommands(execution).map(({ label, text }) => (
        <CopyButton key={label} label={label} text={text} />
      ))}
    </Menu>
  );
}

function More({ execution }: { execution: Execution }): ReactNode {
  const { execution_id: executionId, path, version } = execution;
  return (
    <Menu label={<Ellipsis className="icon" aria-hidden="true" />} name="More actions">
      {version === 0 ? (
        <Link to="/register" search={{ draft: execution.catalog_id }}>
          Edit the draft …
        </Link>
      ) : (
        <>
          {!isFinal(execution.status) && <RunAnother execution={execution} />}
          <Link
            to="/entry/$"
            params={{ _splat: path }}
            // The form of the run reads it: its inputs begin with those of this execution.
            search={{ version: String(version), from: executionId }}
          >
            Run with other inputs …
          </Link>
        </>
      )}
      <Link to="/executions" search={{ parent: executionId }}>
        Called executions
      </Link>
      <Link to="/executions" search={{ path }}>
        All executions of {path}
      </Link>
    </Menu>
  );
}

function RunAnother({ execution }: { execution: Execution }): ReactNode {
  const navigate = useNavigate();
  const may = useAllowed("execute", { path: execution.path });
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
    <>
      <AllowedButton
        may={may}
        title="With the same version and the same inputs"
        disabled={again.isPending}
        onClick={() => again.mutate()}
      >
        Run another with the same inputs
      </AllowedButton>
      {again.isError && (
        <p role="alert" className="pad tone-bad wrap">
          {again.error.message}
        </p>
      )}
    </>
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
      explanation="What runs is told to stop, and what it has called is cancelled too. This cannot be undone."
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
