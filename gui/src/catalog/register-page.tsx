import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useState } from "react";
import { answerOf, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { catalogEntry, queries } from "../app/queries.ts";
import type { EditorProblem } from "../parts/editor.tsx";

const route = getRouteApi("/register");
const Editor = lazy(() => import("../parts/editor.tsx"));

const NEW = `apiVersion: flow/v2
kind: Playbook
metadata:
  name: hello
  path: examples/hello
workload:
  who: world
workflow:
  - step: start
    tool:
      kind: noop
      result:
        text: "hello {{ workload.who }}"
`;

/** Writes a document and registers it as the newest version of its path. */
export function RegisterPage(): ReactNode {
  const { from } = route.useSearch();
  const source = useQuery({ ...catalogEntry(from ?? "", "latest"), enabled: from !== undefined });
  const [text, setText] = useState(from === undefined ? NEW : "");
  useEffect(() => {
    if (source.data !== undefined) setText((before) => (before === "" ? source.data.content : before));
  }, [source.data]);
  const navigate = useNavigate();
  const register = useMutation({
    mutationFn: () => answerOf(api.POST("/api/catalog/register", { body: { content: text, if_changed: true } })),
    onSuccess: ({ path }) => {
      void queries.invalidateQueries({ queryKey: ["catalog"] });
      void navigate({ to: "/entry/$", params: { _splat: path }, search: { tab: "document" } });
    },
  });
  const problems = useMemo(() => problemsOf(register.error), [register.error]);
  return (
    <div className="stack">
      <div className="row spread">
        <h1>{from === undefined ? "Register a document" : `Edit ${from}`}</h1>
        <button type="button" className="main" disabled={register.isPending} onClick={() => register.mutate()}>
          {register.isPending ? "Registering …" : "Register"}
        </button>
      </div>
      <Suspense fallback={<p className="quiet">Loading …</p>}>
        <Editor label="Document" value={text} onChange={setText} problems={problems} />
      </Suspense>
      {register.isError && (
        <section className="panel tone-bad" role="alert">
          <p className="wrap">{register.error.message}</p>
          <ul>
            {problems.map((problem) => (
              <li key={`${problem.line}:${problem.column}:${problem.message}`} className="wrap">
                <code>
                  {problem.line}:{problem.column}
                </code>{" "}
                {problem.message}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function problemsOf(error: Error | null): EditorProblem[] {
  const detail = error instanceof Problem ? error.detail : undefined;
  if (typeof detail !== "object" || detail === null) return [];
  const { errors, warnings } = detail as { errors?: unknown; warnings?: unknown };
  return [...listed(errors, "error"), ...listed(warnings, "warning")];
}

function listed(items: unknown, severity: "error" | "warning"): EditorProblem[] {
  if (!Array.isArray(items)) return [];
  return items.map(({ line, column, message, hint }) => ({
    line: Number(line),
    column: Number(column),
    severity,
    message: hint === undefined ? String(message) : `${String(message)} (${String(hint)})`,
  }));
}
