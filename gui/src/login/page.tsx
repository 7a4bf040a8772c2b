import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { Problem } from "../api/problem.ts";
import { queries } from "../api/queries.ts";
import { HAS_LOGIN } from "../api/session.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { isArriving } from "./arrival.ts";
import { goToProvider, hasSession, type Provider, providers, takeAnswer } from "./provider.ts";
import { returnTo } from "./return-to.ts";
import { onSession } from "./session-channel.ts";
import "../styles/login.css";

const route = getRouteApi("/login");

/** Log in with one of the gateway's identity providers; a user with a session goes on at once. */
export function LoginPage(): ReactNode {
  const { to } = route.useSearch();
  const navigate = useNavigate();
  const [problem, setProblem] = useState<unknown>();
  const [isTaking, setIsTaking] = useState(isArriving);
  const session = useQuery({
    queryKey: ["session"],
    queryFn: ({ signal }) => hasSession(signal),
    enabled: HAS_LOGIN && !isTaking,
    gcTime: 0,
  });
  useEffect(() => {
    // No clean-up: an answer is taken once, however often this runs.
    takeAnswer().then(
      async (next) => {
        if (next === undefined) return;
        await queries.resetQueries();
        await navigate({ href: next, replace: true });
      },
      (error: unknown) => {
        setProblem(error);
        setIsTaking(false);
      },
    );
  }, [navigate]);
  const { refetch } = session;
  useEffect(() => onSession((change) => void (change === "in" && refetch())), [refetch]);
  const isIn = session.data === true;
  useEffect(() => {
    if (!isIn) return;
    const others = { predicate: ({ queryKey }: { queryKey: readonly unknown[] }) => queryKey[0] !== "session" };
    void queries.resetQueries(others).then(() => navigate({ href: returnTo(to), replace: true }));
  }, [isIn, to, navigate]);
  if (!HAS_LOGIN) return <NoLogin />;
  if (isTaking || isIn) {
    return (
      <section className="panel stack login" aria-busy="true">
        <h1>Logging you in …</h1>
      </section>
    );
  }
  return (
    <section className="panel stack login">
      <h1>Log in</h1>
      {to !== undefined && problem === undefined && (
        <p className="wrap">Your session has ended, or there was none. After you log in you return to this page.</p>
      )}
      {problem !== undefined && <Refused error={problem} />}
      <Providers to={returnTo(to)} onProblem={setProblem} />
    </section>
  );
}

function Providers({ to, onProblem }: { to: string; onProblem(error: unknown): void }): ReactNode {
  const known = useQuery({ queryKey: ["providers"], queryFn: ({ signal }) => providers(signal) });
  const [isLeaving, setIsLeaving] = useState(false);
  const leave = (provider: Provider) => {
    setIsLeaving(true);
    goToProvider(provider, to).catch((error: unknown) => {
      setIsLeaving(false);
      onProblem(error);
    });
  };
  if (known.isError) return <ProblemPanel error={known.error} again={() => void known.refetch()} />;
  if (known.isPending) return <p className="quiet">Loading the login providers …</p>;
  if (known.data.length === 0) {
    return (
      <p>
        Logins are not set up here yet: the operator of this gateway sets <code>FLOW_IDP_DOMAINS</code> and{" "}
        <code>FLOW_IDP_AUDIENCE</code>.
      </p>
    );
  }
  return (
    <ul className="stack bare">
      {known.data.map((provider) => (
        <li key={provider.domain} className="stack">
          <button
            type="button"
            className="main"
            disabled={isLeaving || provider.problem !== null}
            onClick={() => leave(provider)}
          >
            Log in with {provider.name}
          </button>
          {provider.problem !== null && (
            <p role="status" className="quiet wrap">
              Not now: {provider.problem}
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Why a login failed. The gateway's message is for the operator; the first line is for the user. */
function Refused({ error }: { error: unknown }): ReactNode {
  const problem = error instanceof Problem ? error : undefined;
  const title = problem === undefined ? "The login could not be started" : titleOf(problem.status);
  return (
    <div role="alert" className="panel tone-bad">
      <h2>{title}</h2>
      <p className="wrap">{error instanceof Error ? error.message : String(error)}</p>
      {problem?.requestId !== undefined && (
        <p className="quiet">
          Request <code>{problem.requestId}</code>
        </p>
      )}
    </div>
  );
}

function titleOf(status: number): string {
  if (status === 0) return "The gateway is not responding";
  if (status === 401) return "This login could not be verified";
  if (status === 403) return "You may not log in here";
  if (status === 429) return "Too many logins at once";
  return "The login did not succeed";
}

function NoLogin(): ReactNode {
  return (
    <section className="panel stack login">
      <h1>No login on this page</h1>
      <p>This page comes from the server itself, which identifies callers by its token. Users log in at the gateway.</p>
    </section>
  );
}
