import { type ReactNode, useEffect, useRef } from "react";

/** Asks before something is done that cannot be taken back. Escape and "No" do nothing. */
export function ConfirmDialog({
  title,
  action,
  isRisky = false,
  isBusy,
  children,
  onConfirm,
  onClose,
}: {
  title: string;
  /** What the button says: the deed, not "OK". */
  action: string;
  isRisky?: boolean;
  isBusy: boolean;
  children?: ReactNode;
  onConfirm(): void;
  onClose(): void;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onClose={onClose}>
      <div className="stack">
        <h1 id="confirm-title" className="wrap">
          {title}
        </h1>
        {children}
        <div className="row">
          <button type="button" className={isRisky ? "risky" : "main"} disabled={isBusy} onClick={onConfirm}>
            {action}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            No
          </button>
        </div>
      </div>
    </dialog>
  );
}
