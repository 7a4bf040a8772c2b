import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import type { Allowed } from "./allowed.ts";
import { AllowedButton } from "./allowed-button.tsx";
import { DialogEnd } from "./dialog-end.tsx";

/** What a {@link ReasonButton} says and does. */
export interface ReasonButtonProps {
  may: Allowed;
  /** The button on the page, and the one in the dialog, with what that says while it is at work. */
  button: string;
  submit: string;
  submitting: string;
  title: string;
  explanation: string;
  /** The label of the reason, and what the empty field says. */
  label: string;
  placeholder: string;
  /** It cannot be taken back. */
  isRisky?: boolean;
  /** Empty: no reason was given. */
  act(reason: string): Promise<unknown>;
  onDone(): void;
}

/** A button that asks for a reason before it does something that others will wonder about. */
export function ReasonButton(props: ReasonButtonProps): ReactNode {
  const { may, button, submit, submitting, title, explanation, label, placeholder, isRisky = false } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const action = useMutation({
    mutationFn: () => props.act(reason),
    onSuccess: () => {
      dialog.current?.close();
      props.onDone();
    },
  });
  const look = isRisky ? { className: "risky" } : {};
  return (
    <>
      <AllowedButton may={may} {...look} onClick={() => dialog.current?.showModal()}>
        {button}
      </AllowedButton>
      <dialog ref={dialog} aria-label={title}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            action.mutate();
          }}
        >
          <h1>{title}</h1>
          <p>{explanation}</p>
          <label>
            {label}
            <input
              className="grow"
              value={reason}
              maxLength={500}
              placeholder={placeholder}
              onChange={(event) => setReason(event.target.value)}
            />
          </label>
          <DialogEnd
            action={action}
            submit={submit}
            submitting={submitting}
            isRisky={isRisky}
            onClose={() => dialog.current?.close()}
          />
        </form>
      </dialog>
    </>
  );
}
