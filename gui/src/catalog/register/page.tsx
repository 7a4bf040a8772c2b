import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useBlocker, useNavigate } from "@tanstack/react-router";
import { FlaskConical, Play } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";
import "../../styles/catalog.css";
import { api } from "../../api/client.ts";
import { catalogEntry, keptDraft, queries } from "../../api/queries.ts";
import type { Validation } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import type { EditorProblem, EditorTarget } from "../../parts/editor/editor.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { DraftPanel } from "../draft/panel.tsx";
import { StepPanel } from "../draft/step-panel.tsx";
import { useSource } from "../source/use-source.ts";
import { SourceView } from "../source/view.tsx";
import { playbookSchema } from "./document-schema.ts";
import { Messages } from "./messages.tsx";
import { ReviewDialog } from "./review-dialog.tsx";
import { useValidation, validated } from "./use-validation.ts";

const route = getRouteApi("/register");

const SCHEMA = { queryKey: ["playbook-schema"], queryFn: playbookSchema, staleTime: Number.POSITIVE_INFINITY };

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
  const { from, draft, step, of } = route.useSearch();
  const registered = useQuery({ ...catalogEntry(from ?? "", "latest"), enabled: from !== undefined, staleTime: 0 });
  const kept = useQuery({ ...keptDraft(draft ?? ""), enabled: draft !== undefined });
  const source = draft === undefined ? registered : kept;
  // The user's text is not replaced by versions that others register meanwhile.
  const began = useRef<{ text: string; version: number | undefined }>(undefined);
  if (from === undefined && draft === undefined) began.current ??= { text: NEW, version: undefined };
  else if (source.data !== undefined)
    began.current ??= { text: source.data.content, version: registered.data?.version };
  const path = from ?? kept.data?.path;
  if (began.current !== undefined)
    return <Writing key={path} from={path} {...began.current} {...(step !== undefined && { test: { step, of } })} />;
  if (source.isError) return <ProblemPanel error={source.error} again={() => void source.refetch()} />;
  return <p className="quiet">Loading …</p>;
}

interface WritingProps {
  from: string | undefined;
  text: string;
  version: number | undefined;
  /** The step that one has come to test, and the execution that it ran in. */
  test?: { step: string; of: string | undefined };
}

function Writing({ from, text: initial, version, test }: WritingProps): ReactNode {
  const [text, setText] = useState(initial);
  const [goTo, setGoTo] = useState<EditorTarget>();
  const [trial, setTrial] = useState<TrialName | undefined>(test === undefined ? undefined : "step");
  const [step, setStep] = useState(test?.step);
  const onStep = useCallback((at: string | undefined) => setStep((before) => at ?? before), []);
  const may = useAllowed("modify", { path: from, to: from === undefined ? "register playbooks" : "change" });
  const schema = useQuery(SCHEMA);
  const source = useSource(text);
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
      <Head from={from} trial={trial} onTrial={setTrial}>
        <AllowedButton may={may} className="main" disabled={check.isPending} onClick={() => check.mutate()}>
          {check.isPending ? "Checking …" : "Register …"}
        </AllowedButton>
      </Head>
      <SourceView {...{ text, problems, goTo, onStep }} state={source} onChange={setText} schema={schema.data} />
      {(check.error ?? error) !== null && <ProblemPanel error={check.error ?? error} />}
      {(last !== undefined || refused !== undefined) && (
        <Messages messages={messages} isRefused={refused !== undefined} onGoTo={setGoTo} />
      )}
      {trial === "draft" && (
        <DraftPanel text={text} source={source.source} validation={validation} onClose={() => setTrial(undefined)} />
      )}
      {trial === "step" && (
        <StepPanel
          {...{ text, validation }}
          path={validation?.path ?? last?.path ?? from}
          steps={source.source?.steps.map(({ name }) => name) ?? NO_STEPS}
          at={step}
          of={test?.of}
          onClose={() => setTrial(undefined)}
        />
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

const NO_STEPS: readonly string[] = [];

type TrialName = "draft" | "step";

/** What the page is about, and what can be done with the text; `children`: how it is registered. */
function Head({
  from,
  trial,
  onTrial,
  children,
}: {
  from: string | undefined;
  trial: TrialName | undefined;
  onTrial(name: TrialName | undefined): void;
  children: ReactNode;
}): ReactNode {
  return (
    <div className="row spread">
      <h1 className="wrap">{from === undefined ? "Register a document" : `Edit ${from}`}</h1>
      <div className="row">
        <Trial name="draft" open={trial} onOpen={onTrial}>
          <Play className="icon" aria-hidden="true" />
          Run draft …
        </Trial>
        <Trial name="step" open={trial} onOpen={onTrial}>
          <FlaskConical className="icon" aria-hidden="true" />
          Test a step …
        </Trial>
        {from !== undefined && (
          <Link to="/entry/$" params={{ _splat: from }} className="button">
            Back
          </Link>
        )}
        {children}
      </div>
    </div>
  );
}

/** Opens and closes one of the panels below the text. */
function Trial({
  name,
  open,
  onOpen,
  children,
}: {
  name: TrialName;
  open: TrialName | undefined;
  onOpen(name: TrialName | undefined): void;
  children: ReactNode;
}): ReactNode {
  return (
    <button type="button" aria-expanded={open === name} onClick={() => onOpen(open === name ? undefined : name)}>
      {children}
    </button>
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
