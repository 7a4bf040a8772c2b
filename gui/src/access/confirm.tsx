import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Allowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { accessChanged } from "./queries.ts";

/** The action to confirm. */
interface Question {
  title: string;
  children: ReactNode;
  /** What the button says that does it. */
  action: string;
  run(): Promise<unknown>;
}

/** A button that asks for confirmation before an action that cannot be undone or locks a user out. */
export function Confirm({
  label,
  name,
  may,
  ...question
}: Question & {
  label: ReactNode;
  /** What the button is called where `label` alone does not say what it is about. */
  name?: string;
  may: Allowed;
}): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <AllowedButton may={may} aria-label={name} onClick={() => setIsOpen(true)}>
        {label}
      </AllowedButton>
      {isOpen && <Asking {...question} onClose={() => setIsOpen(false)} />}
    </>
  );
}

/** A refusal is shown in the dialog. */
function Asking({ title, children, action, run, onClose }: Question & { onClose(): void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  const act = useMutation({
    mutationFn: run,
    onSuccess: async () => {
      await accessChanged();
      dialog.current?.close();
    },
  });
  return (
    <dialog ref={dialog} aria-labelledby={heading} onClose={onClose}>
      <div className="stack">
        <h1 id={heading} className="wrap">
          {title}
        </h1>
        <div className="wrap">{children}</div>
        {act.isError && (
          <p role="alert" className="panel tone-bad wrap">
            {act.error.message}
          </p>
        )}
        <div className="row">
          <button type="button" className="risky" disabled={act.isPending} onClick={() => act.mutate()}>
            {action}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </div>
    </dialog>
  );
}
