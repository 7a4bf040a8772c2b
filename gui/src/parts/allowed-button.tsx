import { type ComponentProps, type ReactNode, useId } from "react";
import type { Allowed } from "./allowed.ts";

/** A button that says why it is disabled. It stays in the tab order, so that screen readers and the tooltip give the reason. */
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
