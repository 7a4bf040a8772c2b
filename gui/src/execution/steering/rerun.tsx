import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { RotateCw } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import { api } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { Execution } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { DialogEnd } from "../../parts/dialog-end.tsx";
import { RerunPlanView } from "./rerun-plan.tsx";
import { type ReadRerun, type RerunForm, readRerun } from "./rerun-request.ts";

/** Runs an execution that has ended again, from a step where one is named: shows what would run before it does. */
export function Rerun({
  execution,
  step,
  look = "",
  label = step === undefined ? "Run again …" : "Run again from here …",
}: {
  execution: Execution;
  step?: string;
  /** A class of the button. */
  look?: string;
  label?: string;
}): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  const may = useAllowed("execute", { path: execution.path, to: "run" });
  return (
    <>
      <AllowedButton may={may} className={look} onClick={() => setIsOpen(true)}>
        <RotateCw className="icon" aria-hidden="true" /> {label}
      </AllowedButton>
      {isOpen && <RerunDialog execution={execution} step={step} onClose={() => setIsOpen(false)} />}
    </>
  );
}

/** A plan is asked for when nothing was typed for so long. */
const TYPED_MS = 300;

interface DialogProps {
  execution: Execution;
  step: string | undefined;
  onClose(): void;
}

function RerunDialog({ execution, step, onClose }: DialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  const { form, change, read, readNow } = useForm(execution, step);
  const plan = usePlan(execution.execution_id, read);
  const rerun = useRerun(execution.execution_id);
  const isReady = read !== undefined && "body" in read && !plan.isError;
  return (
    <dialog ref={dialog} className="rerun" aria-labelledby="rerun-title" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          // What was chosen a moment ago counts, though no plan of it has been asked for yet.
          void readNow().then((now) => "body" in now && rerun.mutate(now.body));
        }}
      >
        <h1 id="rerun-title">Run again</h1>
        <p className="quiet">A new execution. This one stays as it is.</p>
        <Begin execution={execution} form={form} change={change} />
        <Edits form={form} change={change} />
        {read !== undefined && "problem" in read && (
          <p role="alert" className="problem wrap">
            {read.problem}
          </p>
        )}
        {plan.isError && (
          <p role="alert" className="problem wrap">
            {plan.error.message}
          </p>
        )}
        {plan.data !== undefined && !plan.isError && <RerunPlanView plan={plan.data} />}
        {plan.isPending && plan.isFetching && <p className="quiet">Working out what would run …</p>}
        <DialogEnd
          action={rerun}
          submit="Run it"
          submitting="Starting …"
          isBlocked={!isReady}
          onClose={() => dialog.current?.close()}
        />
      </form>
    </dialog>
  );
}

type Change = (part: Partial<RerunForm>) => void;

/** The form, and what it comes to some time after it was last typed in. */
function useForm(
  execution: Execution,
  step: string | undefined,
): { form: RerunForm; change: Change; read: ReadRerun | undefined; readNow(): Promise<ReadRerun> } {
  const workload = execution.workload as JsonObject;
  const [form, setForm] = useState<RerunForm>(() => ({
    begin: step !== undefined ? "step" : hasFailed(execution) ? "failed" : "start",
    step: step ?? "",
    isOnly: false,
    input: Object.keys(workload).length === 0 ? "" : JSON.stringify(workload, null, 2),
    variables: "",
    version: "same",
    isWhole: false,
    reason: "",
  }));
  const [read, setRead] = useState<ReadRerun | undefined>();
  useEffect(() => {
    let isStale = false;
    const timer = setTimeout(() => {
      void readRerun(form, workload).then((found) => {
        if (!isStale) setRead(found);
      });
    }, TYPED_MS);
    return () => {
      isStale = true;
      clearTimeout(timer);
    };
  }, [form, workload]);
  const readNow = async () => {
    const found = await readRerun(form, workload);
    setRead(found);
    return found;
  };
  return { form, change: (part) => setForm((before) => ({ ...before, ...part })), read, readNow };
}

function usePlan(executionId: string, read: ReadRerun | undefined) {
  const { reason: _, ...body } = read !== undefined && "body" in read ? read.body : { from: "start" as const };
  return useQuery({
    queryKey: ["rerun-plan", executionId, body],
    enabled: read !== undefined && "body" in read,
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: ({ signal }) =>
      api("POST /api/executions/:execution_id/rerun", {
        params: { execution_id: executionId },
        body: { ...body, dry_run: true },
        signal,
      }),
  });
}

function useRerun(executionId: string) {
  const navigate = useNavigate();
  const key = useIdempotencyKey();
  return useMutation({
    mutationFn: (body: NonNullable<Extract<ReadRerun, { body: unknown }>["body"]>) =>
      api("POST /api/executions/:execution_id/rerun", {
        params: { execution_id: executionId },
        body,
        headers: key.of(body),
      }),
    onSuccess: ({ execution_id }) => {
      key.answered();
      if (execution_id === undefined) return;
      return navigate({ to: "/executions/$executionId", params: { executionId: execution_id } });
    },
  });
}

function hasFailed({ status }: Execution): boolean {
  return status === "FAILED" || status === "CANCELLED";
}

function Begin({ execution, form, change }: { execution: Execution; form: RerunForm; change: Change }): ReactNode {
  const choices = [
    {
      begin: "failed",
      text: "From the failed step: completed steps keep their results",
      isShown: hasFailed(execution),
    },
    { begin: "start", text: "From the start", isShown: true },
    { begin: "step", text: "From a step", isShown: execution.steps.length > 0 },
  ] as const;
  return (
    <fieldset className="choices">
      <legend>Begin</legend>
      {choices.map(
        ({ begin, text, isShown }) =>
          isShown && (
            <label key={begin} className="row">
              <input
                type="radio"
                name="begin"
                checked={form.begin === begin}
                onChange={() => change({ begin, isOnly: false })}
              />
              {text}
            </label>
          ),
      )}
      {form.begin === "step" && (
        <div className="row">
          <select aria-label="The step" value={form.step} onChange={({ target }) => change({ step: target.value })}>
            <option value="">Choose a step</option>
            {execution.steps.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <label className="row">
            <input
              type="checkbox"
              checked={form.isOnly}
              onChange={({ target }) => change({ isOnly: target.checked })}
            />
            only this step, nothing after it
          </label>
        </div>
      )}
    </fieldset>
  );
}

function Edits({ form, change }: { form: RerunForm; change: Change }): ReactNode {
  return (
    <>
      <details>
        <summary>With other inputs, variables or version</summary>
        <div className="stack">
          <label className="field">
            Inputs, as YAML or JSON
            <textarea
              className="mono"
              rows={6}
              spellCheck={false}
              value={form.input}
              onChange={({ target }) => change({ input: target.value })}
            />
          </label>
          <label className="field">
            Variables to set before the first step that runs
            <textarea
              className="mono"
              rows={2}
              spellCheck={false}
              placeholder="limit: 10"
              value={form.variables}
              onChange={({ target }) => change({ variables: target.value })}
            />
          </label>
          <label className="row">
            Version
            <select
              value={form.version}
              onChange={({ target }) => change({ version: target.value === "latest" ? "latest" : "same" })}
            >
              <option value="same">the same</option>
              <option value="latest">the newest</option>
            </select>
          </label>
          <label className="row">
            <input
              type="checkbox"
              checked={form.isWhole}
              onChange={({ target }) => change({ isWhole: target.checked })}
            />
            run iterations again that succeeded
          </label>
        </div>
      </details>
      <label>
        Why
        <input
          className="grow"
          value={form.reason}
          maxLength={500}
          placeholder="Stands in the log and in the lineage"
          onChange={({ target }) => change({ reason: target.value })}
        />
      </label>
    </>
  );
}
