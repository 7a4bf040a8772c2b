import { type ComponentProps, type ReactNode, useId } from "react";
import type { Allowed } from "./allowed.ts";
import "../styles/allowed.css";

/**
 * A button that says why it does nothing where it is not allowed. It stays in the order of the keys, so that the reason is
 * heard, and read by whoever points at it.
 */
export function AllowedButton({ may, children, ...rest }: ComponentProps<"button"> & { may: Allowed }): ReactNode {
  const reason = useId();
  if (may.allowed) {
    return (
      <button type="button" {...rest}>
        {children}
      </button>
    );
  }
  return (
    <>
      <button
        type="button"
        className={rest.className}
        aria-label={rest["aria-label"]}
        aria-disabled="true"
        aria-describedby={reason}
        title={may.why}
      >
        {children}
      </button>
      <span id={reason} className="unseen">
        {may.why}
      </span>
    </>
  );
}
