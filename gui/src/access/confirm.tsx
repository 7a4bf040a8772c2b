import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useId, useRef } from "react";
import type { Allowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { accessChanged } from "./queries.ts";

/** A button that asks before it does what cannot be taken back, or locks somebody out. A refusal is said where it was asked. */
export function Confirm({
  label,
  name,
  title,
  children,
  action,
  may,
  run,
}: {
  label: ReactNode;
  /** What the button is called where `label` alone does not say what it is about. */
  name?: string;
  title: string;
  children: ReactNode;
  action: string;
  may: Allowed;
  run(): Promise<unknown>;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const act = useMutation({
    mutationFn: run,
    onSuccess: async () => {
      dialog.current?.close();
      await accessChanged();
    },
  });
  const open = () => {
    act.reset();
    dialog.current?.showModal();
  };
  return (
    <>
      <AllowedButton may={may} aria-label={name} onClick={open}>
        {label}
      </AllowedButton>
      <dialog ref={dialog} aria-labelledby={heading}>
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
    </>
  );
}
