import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { executionList } from "../../api/queries.ts";
import type { Validation } from "../../api/types.ts";
import { RerunPlanView } from "../../execution/steering/rerun-plan.tsx";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { useNow } from "../../parts/now.tsx";
import { isFinal } from "../../parts/status.tsx";
import { agoText } from "../../parts/time.ts";
import { RunOutcome } from "./outcome.tsx";
import { useMayRun, whyNot } from "./panel.tsx";
import { PanelHead } from "./panel-head.tsx";
import { RecordedInputs } from "./recorded-inputs.tsx";

/** What {@link StepPanel} is about. */
interface StepPanelProps {
  text: string;
  /** Of the text, as far as it is known. */
  path: string | undefined;
  /** Names of its steps. */
  steps: readonly string[];
  /** The step that the cursor is in. */
  at: string | undefined;
  /** The execution that was come from. */
  of: string | undefined;
  validation: Validation | undefined;
  onClose(): void;
}

/** Runs one step of the editor's text with the inputs that it had in a recorded run: shows what that does before it does it. */
export function StepPanel({ text, path, steps, at, of: given, validation, onClose }: StepPanelProps): ReactNode {
  const [chosen, setChosen] = useState<string>();
  const [of, setOf] = useState(given ?? "");
  const names = [chosen, at, steps[0]];
  const step = names.find((name) => name !== undefined && steps.includes(name)) ?? "";
  const why = whyNot(validation);
  const isKnown = why === undefined && validation !== undefined && step !== "";
  const { plan, run, error } = useStepTest({ content: text, step, ...(of !== "" && { execution_id: of }) }, isKnown);
  const may = useMayRun(path);
  const isReady = plan !== undefined;
  return (
    <section className="panel stack" aria-labelledby="step-title">
      <PanelHead id="step-title" title="Test a step" onClose={onClose} />
      <p className="quiet wrap">
        Runs one step of the text as it stands, and nothing after it, with the inputs that it had in a run. Nothing is
        registered; what the step does outside is as real as in any run.
      </p>
      <div className="row">
        <StepChoice steps={steps} step={step} onStep={setChosen} />
        <RunChoice path={path} of={of} onOf={setOf} />
      </div>
      {why !== undefined && (
        <p role="status" className="note tone-bad wrap">
          {why}
        </p>
      )}
      {why === undefined && error !== null && (
        <p role="alert" className="problem wrap">
          {error.message}
        </p>
      )}
      {plan !== undefined && <StepPlan step={step} plan={plan} />}
      <div className="row">
        <AllowedButton may={may} className="main" disabled={!isReady || run.isPending} onClick={() => run.mutate()}>
          {run.isPending ? "Starting …" : "Run this step"}
        </AllowedButton>
      </div>
      {run.data?.execution_id !== undefined && (
        <RunOutcome key={run.data.execution_id} executionId={run.data.execution_id} />
      )}
    </section>
  );
}

/** The plan of the test, undefined until it is that of this request, and the call that runs it. */
function useStepTest(body: { content: string; step: string; execution_id?: string }, isKnown: boolean) {
  const asked = useQuery({
    queryKey: ["step-plan", body],
    enabled: isKnown,
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: ({ signal }) => api("POST /api/execute/draft/step", { body: { ...body, dry_run: true }, signal }),
  });
  const key = useIdempotencyKey();
  const run = useMutation({
    mutationFn: () => api("POST /api/execute/draft/step", { body, headers: key.of(body) }),
    onSuccess: () => key.answered(),
  });
  const plan = isKnown && !asked.isError && !asked.isPlaceholderData ? asked.data : undefined;
  return { plan, run, error: run.error ?? asked.error };
}

function StepChoice({
  steps,
  step,
  onStep,
}: {
  steps: readonly string[];
  step: string;
  onStep(name: string): void;
}): ReactNode {
  return (
    <label className="row">
      Step
      <select aria-label="Step" value={step} onChange={({ target }) => onStep(target.value)}>
        {steps.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What will run, and whose inputs it takes. */
function StepPlan({
  step,
  plan,
}: {
  step: string;
  plan: NonNullable<ReturnType<typeof useStepTest>["plan"]>;
}): ReactNode {
  return (
    <>
      <p className="wrap">
        With the inputs that <code>{step}</code> had in execution{" "}
        <Link to="/executions/$executionId" params={{ executionId: plan.rerun_of }} search={{ step }} target="_blank">
          {plan.rerun_of}
        </Link>
      </p>
      <RecordedInputs key={`${plan.rerun_of}/${step}`} executionId={plan.rerun_of} step={step} />
      <RerunPlanView plan={plan} />
    </>
  );
}

/** Which recorded run the inputs are taken from. */
function RunChoice({ path, of, onOf }: { path: string | undefined; of: string; onOf(of: string): void }): ReactNode {
  const { data } = useInfiniteQuery({ ...executionList({ path: path ?? "" }), enabled: path !== undefined });
  const now = useNow();
  const ended = (data?.pages[0]?.executions ?? []).filter(
    ({ status, version, started_by: by }) => isFinal(status) && (version > 0 || by?.kind !== "rerun"),
  );
  const isListed = of === "" || ended.some((one) => one.execution_id === of);
  return (
    <label className="row">
      With the inputs of
      <select aria-label="With the inputs of" value={of} onChange={({ target }) => onOf(target.value)}>
        <option value="">the newest run of this step</option>
        {!isListed && <option value={of}>{of}</option>}
        {ended.map(({ execution_id: id, status, started_at: at }) => (
          <option key={id} value={id}>
            {id}, {status.toLowerCase()}, {agoText(Date.parse(at), now)}
          </option>
        ))}
      </select>
    </label>
  );
}
