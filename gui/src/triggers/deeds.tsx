import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Zap } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api } from "../api/client.ts";
import { useIdempotencyKey } from "../api/idempotency.ts";
import { queries } from "../api/queries.ts";
import type { Trigger } from "../api/triggers.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";

const renew = () => queries.invalidateQueries({ queryKey: ["triggers"] });

/** Fires a trigger now, and says what came of it. */
export function FireNow({ trigger: { trigger_id: id, path, name } }: { trigger: Trigger }): ReactNode {
  const may = useAllowed("execute", { path });
  const key = useIdempotencyKey();
  const fire = useMutation({
    mutationFn: () =>
      api("POST /api/triggers/:trigger_id/fire", {
        params: { trigger_id: id },
        body: {},
        headers: key.of(id),
      }),
    onSuccess: () => key.answered(),
    onSettled: renew,
  });
  return (
    <>
      <AllowedButton
        may={may}
        className="main"
        disabled={fire.isPending}
        data-command={`Fire ${name} now`}
        onClick={() => fire.mutate()}
      >
        <Zap className="icon" aria-hidden="true" />
        {fire.isPending ? "Firing …" : "Fire now"}
      </AllowedButton>
      <p className="fired" role="status">
        {fire.data?.execution_id !== undefined && (
          <>
            Started{" "}
            <Link to="/executions/$executionId" params={{ executionId: fire.data.execution_id }} className="mono">
              {fire.data.execution_id}
            </Link>
          </>
        )}
        {fire.data !== undefined && fire.data.execution_id === undefined && (
          <span className="wrap">
            {fire.data.status === "queued" ? "Queued" : `Not started: ${fire.data.reason ?? fire.data.status}`}
          </span>
        )}
        {fire.isError && <span className="problem wrap">{fire.error.message}</span>}
      </p>
    </>
  );
}

/** Turns a trigger on, or off after asking. */
export function Toggle({ trigger: { trigger_id: id, path, name, enabled } }: { trigger: Trigger }): ReactNode {
  const may = useAllowed("modify", { path, to: "turn triggers on and off of" });
  const [isAsking, setIsAsking] = useState(false);
  const toggle = useMutation({
    mutationFn: () =>
      api(enabled ? "POST /api/triggers/:trigger_id/disable" : "POST /api/triggers/:trigger_id/enable", {
        params: { trigger_id: id },
        body: {},
      }),
    onSuccess: () => setIsAsking(false),
    onSettled: renew,
  });
  return (
    <>
      <AllowedButton
        may={may}
        disabled={toggle.isPending}
        data-command={enabled ? `Turn ${name} off` : `Turn ${name} on`}
        onClick={() => (enabled ? setIsAsking(true) : toggle.mutate())}
      >
        {enabled ? "Turn off …" : "Turn on"}
      </AllowedButton>
      {toggle.isError && !isAsking && (
        <p role="alert" className="problem wrap">
          {toggle.error.message}
        </p>
      )}
      {isAsking && (
        <ConfirmDialog
          title={`Turn ${name} off?`}
          action="Turn it off"
          isBusy={toggle.isPending}
          onConfirm={() => toggle.mutate()}
          onClose={() => setIsAsking(false)}
        >
          <p>
            It does not fire until it is turned on again, whatever version is registered meanwhile. What it has queued
            is skipped; what runs goes on. Times at which it is off are not made up for.
          </p>
          {toggle.isError && (
            <p role="alert" className="problem wrap">
              {toggle.error.message}
            </p>
          )}
        </ConfirmDialog>
      )}
    </>
  );
}
