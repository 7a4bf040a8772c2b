import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../../../src/schema/words/json.ts";
import { api } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { Problem } from "../../api/problem.ts";
import { executionDetail } from "../../api/queries.ts";
import type { Resource } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { readMap } from "../../parts/read-yaml.ts";
import { Field } from "./field.tsx";
import { readInputs, type Texts, textOf } from "./input-values.ts";
import { fieldsOf, type InputField, inTextOrder } from "./inputs.ts";
import { keepInputs, lastInputs } from "./last-inputs.ts";
import { SystemCalls } from "./system-calls.tsx";
import { useFocusOnProblem } from "./use-focus-on-problem.ts";

/** The form of a playbook's inputs, filled with those of another run where `from` names one, else with the last ones. */
export function RunForm({ entry, from }: { entry: Resource; from: string | undefined }): ReactNode {
  const other = useQuery({ ...executionDetail(from ?? ""), enabled: from !== undefined });
  if (from !== undefined && other.isError)
    return <ProblemPanel error={other.error} again={() => void other.refetch()} />;
  if (from !== undefined && other.data === undefined) return <p className="quiet">Loading the inputs of {from} …</p>;
  const filled = other.data === undefined ? lastInputs(entry.path) : (other.data.workload as JsonObject);
  return <Form key={from ?? ""} entry={entry} filled={filled} from={other.data === undefined ? undefined : from} />;
}

/** What the server shows instead of a secret. */
const MASKED = "[secret]";

function Form({ entry, filled, from }: { entry: Resource; filled: JsonObject; from: string | undefined }): ReactNode {
  const fields = useMemo(() => inTextOrder(fieldsOf(entry.payload), entry.content), [entry]);
  // A playbook that declares its inputs has no others.
  const isClosed = isJsonObject(entry.payload["inputs"]);
  const [texts, setTexts] = useState<Texts>(() => startTexts(fields, filled));
  const [more, setMore] = useState(() => (isClosed ? "" : moreText(fields, filled)));
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const form = useFocusOnProblem(problems);
  const run = useRun(entry, fields);
  const refused = refusedInputs(run.error);
  const may = useAllowed("execute", { path: entry.path });
  const submit = async () => {
    const { values, problems: found } = await readInputs(fields, texts);
    const others = await readMap(more).catch((error: Error) => error);
    const all = others instanceof Error ? { ...found, "": others.message } : found;
    setProblems(all);
    if (others instanceof Error || Object.keys(all).length > 0) return;
    run.mutate({ ...others, ...values });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!run.isPending) void submit();
  };
  const count = Object.keys(problems).length;
  return (
    <form ref={form} className="panel stack" onSubmit={onSubmit} noValidate>
      {from !== undefined && (
        <p>
          With the inputs of{" "}
          <Link to="/executions/$executionId" params={{ executionId: from }}>
            {from}
          </Link>
          ; secrets are not copied.
        </p>
      )}
      {fields.length === 0 && <p className="quiet">It names no inputs.</p>}
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          problem={(own(problems, field.name) ?? own(refused, field.name)) as string | undefined}
          text={texts[field.name] ?? ""}
          onText={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
        />
      ))}
      {!isClosed && <MoreInputs text={more} onText={setMore} problem={problems[""]} />}
      <SystemCalls entry={entry} />
      {!may.allowed && <p className="quiet wrap">{may.why}</p>}
      {(count > 0 || run.isError) && (
        <p role="alert" className="problem wrap">
          {count > 0
            ? `Not started: ${count === 1 ? "one input is" : `${count} inputs are`} wrong.`
            : run.error?.message}
        </p>
      )}
      <div className="row">
        <AllowedButton may={may} type="submit" className="main" disabled={run.isPending}>
          {run.isPending ? "Starting …" : "Run"}
        </AllowedButton>
        <button type="button" onClick={() => [setTexts(startTexts(fields, {})), setMore(""), setProblems({})]}>
          Defaults
        </button>
      </div>
    </form>
  );
}

function MoreInputs({
  text,
  onText,
  problem,
}: {
  text: string;
  onText(text: string): void;
  problem: string | undefined;
}): ReactNode {
  return (
    <details open={text !== "" || problem !== undefined}>
      <summary className="quiet">Other inputs</summary>
      <div className="field">
        <label htmlFor="more-inputs">Inputs that the document has no default for, as YAML or JSON</label>
        <textarea
          id="more-inputs"
          className="mono"
          rows={Math.max(3, Math.min(14, text.split("\n").length + 1))}
          spellCheck={false}
          placeholder="name: value"
          value={text}
          aria-invalid={problem !== undefined}
          onChange={(event) => onText(event.target.value)}
        />
        {problem !== undefined && <p className="problem wrap">It {problem}</p>}
      </div>
    </details>
  );
}

function useRun(entry: Resource, fields: readonly InputField[]) {
  const navigate = useNavigate();
  const key = useIdempotencyKey();
  return useMutation({
    mutationFn: (workload: JsonObject) => {
      const isAgent = entry.kind === "agent";
      const { path, version } = entry;
      const body = { path, version, workload: workload as never, ...(isAgent && { resource_kind: "agent" as const }) };
      return api("POST /api/execute", { body, headers: key.of(body) });
    },
    onSuccess: ({ execution_id }, workload) => {
      key.answered();
      keepInputs(entry.path, fields, workload);
      void navigate({ to: "/executions/$executionId", params: { executionId: execution_id } });
    },
  });
}

/** What the server found wrong with the inputs, by their names. */
function refusedInputs(error: unknown): Readonly<Record<string, string>> {
  const errors = error instanceof Problem && isJsonObject(error.detail) ? own(error.detail, "errors") : undefined;
  const found: Record<string, string> = {};
  for (const one of Array.isArray(errors) ? errors : []) {
    const { path, message } = isJsonObject(one) ? one : {};
    if (typeof path !== "string" || typeof message !== "string") continue;
    const [name = "", ...below] = path.split(".");
    setOwn(found, name, below.length === 0 ? message : `${below.join(".")} ${message}`);
  }
  return found;
}

function startTexts(fields: readonly InputField[], filled: JsonObject): Texts {
  return Object.fromEntries(
    fields.map((field) => {
      const given = Object.hasOwn(filled, field.name) ? filled[field.name] : undefined;
      return [field.name, textOf(field, given === undefined || hasSecret(given) ? field.initial : given)];
    }),
  );
}

/** Inputs that no field is for. */
function moreText(fields: readonly InputField[], filled: JsonObject): string {
  const known = new Set(fields.map(({ name }) => name));
  const others = Object.entries(filled).filter(([name, value]) => !known.has(name) && !hasSecret(value));
  return others.length === 0 ? "" : JSON.stringify(Object.fromEntries(others), null, 2);
}

function hasSecret(value: Json): boolean {
  if (typeof value === "string") return value.includes(MASKED);
  if (Array.isArray(value)) return value.some(hasSecret);
  return isJsonObject(value) && Object.values(value).some(hasSecret);
}
