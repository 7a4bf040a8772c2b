import type { ReactNode } from "react";

/** The action of a dialog, as a mutation tells it. */
export interface DialogAction {
  isPending: boolean;
  isError: boolean;
  error: Error | null;
}

/** What {@link DialogEnd} says and does. */
export interface DialogEndProps {
  action: DialogAction;
  /** On the button that does it. */
  submit: string;
  /** The same while it is at work; default: `submit`. */
  submitting?: string;
  /** It cannot be taken back. */
  isRisky?: boolean;
  /** It cannot be done as the form stands. */
  isBlocked?: boolean;
  onClose(): void;
}

/** The end of a dialog's form: why the last try failed, the button that does it, and the one that leaves. */
export function DialogEnd(props: DialogEndProps): ReactNode {
  const { action, submit, submitting = submit, isRisky = false, isBlocked = false, onClose } = props;
  return (
    <>
      {action.isError && (
        <p role="alert" className="panel tone-bad wrap">
          {action.error?.message}
        </p>
      )}
      <div className="row">
        <button type="submit" className={isRisky ? "risky" : "main"} disabled={action.isPending || isBlocked}>
          {action.isPending ? submitting : submit}
        </button>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </>
  );
}
