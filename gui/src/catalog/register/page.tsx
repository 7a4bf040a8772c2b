import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useBlocker, useNavigate } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useMemo, useRef, useState } from "react";
import "../../styles/catalog.css";
import { api } from "../../api/client.ts";
import { catalogEntry, queries } from "../../api/queries.ts";
import type { Validation } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import type { EditorProblem, EditorTarget } from "../../parts/editor/editor.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { playbookSchema } from "./document-schema.ts";
import { Messages } from "./messages.tsx";
import { ReviewDialog } from "./review-dialog.tsx";
import { useValidation, validated } from "./use-validation.ts";

const route = getRouteApi("/register");
const Editor = lazy(() => import("../../parts/editor/editor.tsx"));

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
  const source = useQuery({ ...catalogEntry(from ?? "", "latest"), enabled: from !== undefined, staleTime: 0 });
  // The user's text is not replaced by versions that others register meanwhile.
  const began = useRef<{ text: string; version: number | undefined }>(undefined);
  if (from === undefined) began.current ??= { text: NEW, version: undefined };
  else if (source.data !== undefined) began.current ??= { text: source.data.content, version: source.data.version };
  if (began.current !== undefined) return <Writing key={from} from={from} {...began.current} />;
  if (source.isError) return <ProblemPanel error={source.error} again={() => void source.refetch()} />;
  return <p className="quiet">Loading …</p>;
}

function Writing({
  from,
  text: initial,
  version,
}: {
  from: string | undefined;
  text: string;
  version: number | undefined;
}): ReactNode {
  const [text, setText] = useState(initial);
  const [goTo, setGoTo] = useState<EditorTarget>();
  const may = useAllowed("modify", { path: from, to: from === undefined ? "register playbooks" : "change" });
  const schema = useQuery({
    queryKey: ["playbook-schema"],
    queryFn: playbookSchema,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { validation, last, error } = useValidation(text);
  const { review, check, register, refused, close } = useRegistration(text);
  // An answer about another text would mark the wrong lines.
  const messages = useMemo(() => (refused ?? validation ?? last)?.messages ?? [], [refused, validation, last]);
  const problems = useMemo(() => messages.map(problemOf), [messages]);
  const isChanged = text !== initial && !register.isSuccess;
  useBlocker({
    shouldBlockFn: () => isChanged && !confirm("Leave without registering what you wrote?"),
    enableBeforeUnload: isChanged,
  });
  return (
    <div className="stack">
      <div className="row spread">
        <h1 className="wrap">{from === undefined ? "Register a document" : `Edit ${from}`}</h1>
        <div className="row">
          {from !== undefined && (
            <Link to="/entry/$" params={{ _splat: from }} className="button">
              Back
            </Link>
          )}
          <AllowedButton may={may} className="main" disabled={check.isPending} onClick={() => check.mutate()}>
            {check.isPending ? "Checking …" : "Register …"}
          </AllowedButton>
        </div>
      </div>
      <Suspense fallback={<p className="quiet">Loading the editor …</p>}>
        <Editor label="Document" value={text} onChange={setText} problems={problems} schema={schema.data} goTo={goTo} />
      </Suspense>
      {(check.error ?? error) !== null && <ProblemPanel error={check.error ?? error} />}
      {(last !== undefined || refused !== undefined) && (
        <Messages messages={messages} isRefused={refused !== undefined} onGoTo={setGoTo} />
      )}
      {review !== undefined && (
        <ReviewDialog
          path={review}
          text={text}
          began={review === from ? version : undefined}
          isBusy={register.isPending}
          problem={register.error?.message}
          warnings={messages.filter(({ severity }) => severity === "warning").length}
          onRegister={(strict) => register.mutate(strict)}
          onClose={close}
        />
      )}
    </div>
  );
}

/** Checks the text as it is, then shows what it would change, then registers it. */
function useRegistration(text: string) {
  const [review, setReview] = useState<string>();
  const [refusal, setRefusal] = useState<{ text: string; validation: Validation }>();
  const navigate = useNavigate();
  const check = useMutation({
    mutationFn: () => validated(text),
    onSuccess: (validation) => {
      setRefusal(validation.valid ? undefined : { text, validation });
      setReview(validation.path ?? undefined);
    },
  });
  const register = useMutation({
    mutationFn: (strict: boolean) =>
      api("POST /api/catalog/register", { body: { content: text, if_changed: true, strict } }),
    onSuccess: async ({ path }) => {
      await queries.invalidateQueries({ queryKey: ["catalog"] });
      await navigate({ to: "/entry/$", params: { _splat: path }, search: { tab: "document" }, ignoreBlocker: true });
    },
  });
  const close = () => {
    setReview(undefined);
    register.reset();
  };
  const refused = refusal?.text === text ? refusal.validation : undefined;
  return { review, check, register, refused, close };
}

function problemOf({ line, column, severity, message, hint }: Validation["messages"][number]): EditorProblem {
  return { line, column, severity, message: hint === undefined ? message : `${message} (${hint})` };
}
