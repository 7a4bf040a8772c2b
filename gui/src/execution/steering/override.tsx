import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { queries } from "../../api/queries.ts";
import type { Execution, Step } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { DialogEnd } from "../../parts/dialog-end.tsx";
import { readYaml } from "../../parts/read-yaml.ts";

/** Ends a step by hand: skips it, completes it with a result, or fails it. */
export function Override({
  execution,
  step,
  label = "End by hand …",
}: {
  execution: Execution;
  step: Step;
  label?: string;
}): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  const may = useAllowed("execute", { path: execution.path, to: "end steps of" });
  return (
    <>
      <AllowedButton may={may} onClick={() => setIsOpen(true)}>
        {label}
      </AllowedButton>
      {isOpen && <OverrideDialog execution={execution} step={step} onClose={() => setIsOpen(false)} />}
    </>
  );
}

type Action = "skip" | "complete" | "fail";
const ACTIONS: Readonly<Record<Action, string>> = {
  skip: "Skip it: no result, its arcs follow",
  complete: "Complete it with a result",
  fail: "Fail it with an error",
};

function OverrideDialog({
  execution,
  step,
  onClose,
}: {
  execution: Execution;
  step: Step;
  onClose(): void;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [action, setAction] = useState<Action>("skip");
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  const override = useMutation({
    mutationFn: async (form: FormData) =>
      api("POST /api/executions/:execution_id/steps/:step/override", {
        params: { execution_id: execution.execution_id, step: step.name },
        body: await bodyOf(action, form),
      }),
    onSuccess: () => {
      dialog.current?.close();
      void queries.invalidateQueries({ queryKey: ["execution", execution.execution_id] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    override.mutate(new FormData(event.currentTarget));
  };
  return (
    <dialog ref={dialog} aria-labelledby="override-title" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <h1 id="override-title" className="wrap">
          End {step.name} by hand?
        </h1>
        <p>{whatHappens(step)} What follows from it goes on as if it had ended so by itself.</p>
        <Fields step={step} action={action} onAction={setAction} />
        <DialogEnd
          action={override}
          submit={`${action[0]?.toUpperCase()}${action.slice(1)} it`}
          submitting="Ending it …"
          isRisky
          onClose={() => dialog.current?.close()}
        />
      </form>
    </dialog>
  );
}

/** How it ends, and what that takes. */
function Fields({ step, action, onAction }: { step: Step; action: Action; onAction(action: Action): void }): ReactNode {
  return (
    <>
      <fieldset className="choices">
        <legend>How</legend>
        {(Object.keys(ACTIONS) as Action[]).map((name) => (
          <label key={name} className="row">
            <input type="radio" name="action" checked={action === name} onChange={() => onAction(name)} />
            {ACTIONS[name]}
          </label>
        ))}
      </fieldset>
      {action === "complete" && (
        <label className="field">
          Result, as YAML or JSON
          <textarea name="result" className="mono" rows={5} spellCheck={false} />
        </label>
      )}
      {action === "fail" && (
        <>
          <label className="field">
            Error code
            <input name="code" className="mono" required maxLength={64} defaultValue="OVERRIDDEN" />
          </label>
          <label className="field">
            Message
            <input name="message" maxLength={500} />
          </label>
        </>
      )}
      {step.loop !== undefined && (
        <label className="field">
          Iteration, from 0; empty for all that are open
          <input name="iteration" type="number" min={0} step={1} />
        </label>
      )}
      <label className="field">
        Why
        <input name="reason" required maxLength={500} placeholder="Stands in the log and in the audit log" />
      </label>
    </>
  );
}

function whatHappens({ status }: Step): string {
  if (status === "WAITING") return "It is no longer waiting.";
  return status === "RUNNING"
    ? "A worker that has it is told to stop, and what it reports later is ignored."
    : "It has not begun: this counts when it is reached.";
}

async function bodyOf(action: Action, form: FormData) {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const [iteration, message] = [text("iteration"), text("message")];
  return {
    action,
    reason: text("reason"),
    ...(iteration !== "" && { iteration: Number(iteration) }),
    ...(action === "complete" && text("result") !== "" && { result: (await readYaml(text("result"))) as never }),
    ...(action === "fail" && { error: { code: text("code"), ...(message !== "" && { message }) } }),
  };
}
