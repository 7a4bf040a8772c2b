import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { queries } from "../api/queries.ts";
import type { Agent } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Outcome, Running } from "./call-view.tsx";
import type { PastCall } from "./history.ts";
import { OFFERS, type OfferKind, requestedBy } from "./offers.ts";
import { Offers } from "./offers-view.tsx";
import { agentTerminal, type McpServer, serverChoices } from "./servers.ts";
import { useAgentCall } from "./use-agent-call.ts";

const route = getRouteApi("/agents");

/** What a server has listed is cached while the page is open: each list is an execution. */
function knownOffers(agent: string, server: string, kind: OfferKind) {
  return {
    queryKey: ["offers", agent, server, kind],
    queryFn: () => Promise.resolve<unknown>(null),
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  };
}

interface TerminalProps {
  agent: Agent;
  servers: readonly McpServer[];
  /** Until then the path of the agent's server is not known, only a name for it: calls wait. */
  areServersRead: boolean;
  /** An earlier call, with whose arguments the form begins. */
  repeated: PastCall | undefined;
  /** A call has ended. */
  onEnd(): void;
}

/**
 * An agent with inputs `method`, `tool` and `arguments` wraps an MCP server: what the server offers is listed, inspected and called through
 * it.
 */
export function Terminal({ agent, servers, areServersRead, repeated, onEnd }: TerminalProps): ReactNode {
  const about = useMemo(() => agentTerminal(agent), [agent]);
  const choices = useMemo(() => serverChoices(about, servers), [about, servers]);
  const again = repeated?.workload === undefined ? undefined : requestedBy(repeated.workload);
  const { server: chosen, tool: name } = route.useSearch();
  const navigate = route.useNavigate();
  const [kind, setKind] = useState<OfferKind>(again?.kind ?? "tools");
  const server = about.takesServer ? (chosen ?? choices.own[0] ?? choices.others[0] ?? "") : "";
  const listed = useQuery(knownOffers(agent.catalog_id, server, kind)).data;
  const offers = useMemo(() => (listed === undefined ? undefined : OFFERS[kind].read(listed)), [listed, kind]);
  const may = useAllowed("execute", { path: agent.path });
  const { call, cancel, progress } = useAgentCall(agent.path, ({ workload }, { result, status }) => {
    onEnd();
    const list = Object.keys(OFFERS).find((one) => workload["method"] === `${one}/list`) as OfferKind | undefined;
    if (list === undefined || status !== "COMPLETED") return;
    queries.setQueryData(knownOffers(agent.catalog_id, String(workload["server"] ?? ""), list).queryKey, result);
  });
  const ask = (what: string, workload: JsonObject, shown = workload) => {
    const to = server === "" ? {} : { server };
    call.mutate({ what, server: server || undefined, workload: { ...to, ...workload }, shown: { ...to, ...shown } });
  };
  const choose = (change: { server?: string; tool?: string | undefined }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const isBusy = call.isPending || (about.takesServer && !areServersRead);
  return (
    <section className="panel stack" aria-labelledby="agent-title">
      <Head agent={agent} about={about} />
      {!about.wraps && <p>It has inputs of its own and wraps no MCP server: run it with its form.</p>}
      {about.wraps && about.takesServer && (
        <ServerChoice {...choices} chosen={server} onChoose={(one) => choose({ server: one, tool: undefined })} />
      )}
      {about.wraps && (
        <Methods
          kind={kind}
          may={may}
          isBusy={isBusy}
          isListed={offers !== undefined}
          onKind={(one) => [setKind(one), choose({ tool: undefined })]}
          onMethod={(method) => ask(method, { method })}
        />
      )}
      {about.wraps && (
        <Offers
          key={`${server} ${kind}`}
          {...{ kind, offers, may, isBusy: call.isPending, again: again?.kind === kind ? again : undefined }}
          chosen={name}
          onChoose={(one) => choose({ tool: one })}
          onCall={ask}
        />
      )}
      <Progress call={call} cancel={cancel} progress={progress} />
      {call.data !== undefined && !call.isPending && (
        <div className="stack">
          <h3 className="wrap">Answer of {[server, call.variables?.what].filter(Boolean).join(" ")}</h3>
          <Outcome
            call={call.data}
            request={call.variables?.shown ?? {}}
            isBrief={(call.variables?.what.endsWith("/list") ?? false) && offers !== undefined}
          />
        </div>
      )}
    </section>
  );
}

/** What the agent is, and the ways to its document. */
function Head({ agent, about }: { agent: Agent; about: ReturnType<typeof agentTerminal> }): ReactNode {
  return (
    <div>
      <h2 id="agent-title" className="wrap">
        {agent.path}
      </h2>
      {about.description !== "" && <p className="wrap">{about.description}</p>}
      <p className="row">
        {about.scopes.map((scope) => (
          <code key={scope} className="tag wrap">
            {scope}
          </code>
        ))}
        <Link to="/entry/$" params={{ _splat: agent.path }} search={{ tab: "document" }}>
          Document
        </Link>
        <Link to="/entry/$" params={{ _splat: agent.path }} search={{ tab: "run" }}>
          Run it with other inputs
        </Link>
      </p>
    </div>
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
  may: ReturnType<typeof useAllowed>;
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
      <AllowedButton may={may} disabled={isBusy} onClick={() => onMethod(`${kind}/list`)}>
        {isListed ? `List ${kind} again` : `List ${kind}`}
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

function ServerChoice({
  own,
  others,
  chosen,
  onChoose,
}: {
  own: readonly string[];
  others: readonly string[];
  chosen: string;
  onChoose(server: string): void;
}): ReactNode {
  const isKnown = own.includes(chosen) || others.includes(chosen);
  const options = (paths: readonly string[]) => paths.map((path) => <option key={path}>{path}</option>);
  if (own.length + others.length === 0) return <p>No MCP server is registered, and its scopes name none.</p>;
  return (
    <div className="row">
      <label htmlFor="mcp-server">MCP server</label>
      <select id="mcp-server" value={chosen} onChange={(event) => onChoose(event.target.value)}>
        {!isKnown && <option>{chosen}</option>}
        {own.length > 0 && <optgroup label="of its scopes">{options(own)}</optgroup>}
        {others.length > 0 && <optgroup label="others of the catalog">{options(others)}</optgroup>}
      </select>
    </div>
  );
}
