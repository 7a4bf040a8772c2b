import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { queries } from "../api/queries.ts";
import type { Allowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import type { StartCall } from "./call-agent.ts";
import { Outcome, Running } from "./call-view.tsx";
import type { PastCall } from "./history.ts";
import { listedBy, OFFERS, type OfferKind, requestedBy } from "./offers.ts";
import { Offers } from "./offers-view.tsx";
import { useAgentCall } from "./use-agent-call.ts";

/** What a server has listed is cached while the page is open: each list is an execution. */
function knownOffers(id: string, server: string, kind: OfferKind) {
  return {
    queryKey: ["offers", id, server, kind],
    queryFn: () => Promise.resolve<unknown>(null),
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  };
}

/** What is called, and how. */
export interface ConsoleTarget {
  /** What it is known by while the page is open. */
  id: string;
  /** Path of the agent that hands calls on; "" where the server is called itself. */
  agent: string;
  server: string;
  start: StartCall;
  /** What each call has beside its method. */
  inputs: JsonObject;
}

interface ConsoleProps {
  target: ConsoleTarget;
  may: Allowed;
  /** Calls wait: it is not known yet what is called. */
  isWaiting: boolean;
  /** An earlier call, with whose arguments the form begins. */
  repeated: PastCall | undefined;
  /** The chosen tool, resource or prompt. */
  chosen: string | undefined;
  onChoose(name: string | undefined): void;
  /** A call has ended. */
  onEnd(): void;
}

/** What an MCP server offers, to list, inspect and call, and the answer of the last call. */
export function Console({ target, may, isWaiting, repeated, chosen, onChoose, onEnd }: ConsoleProps): ReactNode {
  const { id, agent, server, start, inputs } = target;
  const again = repeated?.workload === undefined ? undefined : requestedBy(repeated.workload);
  const [kind, setKind] = useState<OfferKind>(again?.kind ?? "tools");
  const listed = useQuery(knownOffers(id, server, kind)).data;
  const offers = useMemo(() => (listed === undefined ? undefined : OFFERS[kind].read(listed)), [listed, kind]);
  const { call, cancel, progress } = useAgentCall({ agent, start }, ({ workload }, { result, status }) => {
    onEnd();
    const list = listedBy(workload["method"]);
    if (status === "COMPLETED" && list !== undefined)
      queries.setQueryData(knownOffers(id, server, list).queryKey, result);
  });
  const ask = (what: string, workload: JsonObject, shown = workload) =>
    call.mutate({
      ...{ what, server: server || undefined },
      workload: { ...inputs, ...workload },
      shown: { ...inputs, ...shown },
    });
  const isList = listedBy(call.variables?.workload["method"]) !== undefined;
  return (
    <>
      <Methods
        kind={kind}
        may={may}
        isBusy={call.isPending || isWaiting}
        isListed={offers !== undefined}
        onKind={(one) => [setKind(one), onChoose(undefined)]}
        onMethod={(method) => ask(method, { method })}
      />
      <Offers
        key={`${server} ${kind}`}
        {...{ kind, offers, may, chosen, onChoose }}
        isBusy={call.isPending}
        again={again?.kind === kind ? again : undefined}
        onCall={ask}
      />
      <Progress call={call} cancel={cancel} progress={progress} />
      {call.data !== undefined && !call.isPending && (
        <div className="stack">
          <h3 className="wrap">Answer of {[server, call.variables?.what].filter(Boolean).join(" ")}</h3>
          <Outcome call={call.data} request={call.variables?.shown ?? {}} isBrief={isList && offers !== undefined} />
        </div>
      )}
    </>
  );
}

/** Which of what the server offers is looked at, and the calls that need nothing chosen. */
function Methods({
  kind,
  may,
  isBusy,
  isListed,
  onKind,
  onMethod,
}: {
  kind: OfferKind;
  may: Allowed;
  isBusy: boolean;
  /** They are known already. */
  isListed: boolean;
  onKind(kind: OfferKind): void;
  onMethod(method: string): void;
}): ReactNode {
  return (
    <div className="row">
      <fieldset className="segments">
        <legend className="unseen">Shown of the server</legend>
        {(Object.keys(OFFERS) as OfferKind[]).map((one) => (
          <button key={one} type="button" aria-pressed={kind === one} onClick={() => onKind(one)}>
            {OFFERS[one].title}
          </button>
        ))}
      </fieldset>
      <AllowedButton may={may} disabled={isBusy} onClick={() => onMethod(OFFERS[kind].list)}>
        {`List ${OFFERS[kind].title.toLowerCase()}${isListed ? " again" : ""}`}
      </AllowedButton>
      <AllowedButton may={may} disabled={isBusy} onClick={() => onMethod("health")}>
        Health
      </AllowedButton>
    </div>
  );
}

/** The call that runs, with a way to stop it, and what went wrong. */
function Progress({ call, cancel, progress }: ReturnType<typeof useAgentCall>): ReactNode {
  return (
    <>
      {call.isPending && (
        <Running
          progress={progress}
          isCancelling={cancel.isPending}
          onCancel={(executionId) => cancel.mutate(executionId)}
        />
      )}
      {cancel.isError && <ProblemPanel error={cancel.error} />}
      {call.isError && <ProblemPanel error={call.error} />}
    </>
  );
}
