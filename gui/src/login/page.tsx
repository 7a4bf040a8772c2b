import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { queries } from "../app/queries.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { goToProvider, providers, takeAnswer } from "./provider.ts";

const route = getRouteApi("/login");

/** Log in with one of the gateway's identity providers. */
export function LoginPage(): ReactNode {
  const { to = "/" } = route.useSearch();
  const navigate = useNavigate();
  const [problem, setProblem] = useState<unknown>();
  const known = useQuery({ queryKey: ["providers"], queryFn: ({ signal }) => providers(signal) });
  useEffect(() => {
    const leaving = new AbortController();
    takeAnswer(leaving.signal).then(
      (next) => {
        if (next === undefined) return;
        void queries.resetQueries();
        void navigate({ href: next });
      },
      (error: unknown) => {
        if (!leaving.signal.aborted) setProblem(error);
      },
    );
    return () => leaving.abort();
  }, [navigate]);
  return (
    <section className="panel stack login">
      <h1>Log in</h1>
      {problem !== undefined && <ProblemPanel error={problem} />}
      {known.isError && <ProblemPanel error={known.error} again={() => void known.refetch()} />}
      {known.isPending && <p className="quiet">Asking with whom one can log in …</p>}
      {known.data?.length === 0 && (
        <p>No provider is set that browsers can log in with: FLOW_IDP_CLIENT_ID is missing.</p>
      )}
      {known.data?.map((provider) => (
        <button key={provider.domain} type="button" className="main" onClick={() => goToProvider(provider, to)}>
          Log in with {provider.domain}
        </button>
      ))}
    </section>
  );
}
