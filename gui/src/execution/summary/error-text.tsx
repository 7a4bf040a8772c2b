import type { ReactNode } from "react";
import { CopyButton } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json/view.tsx";
import type { TaskFailure } from "./task-runs.ts";

/** Characters of a message that are shown at first sight. */
const SHORT_MAX = 600;

/**
 * An error with its cause: its code, its message, whether a retry may help, and its details. `isShort`: without details;
 * `isShownAbove`: the page shows the error above, so that here its traceback is enough.
 */
export function ErrorText({
  error,
  isShort = false,
  isShownAbove = false,
}: {
  error: object;
  isShort?: boolean;
  isShownAbove?: boolean;
}): ReactNode {
  const { code, message, kind, retryable, status, attempt } = error as TaskFailure;
  const details = remainingDetails(error as TaskFailure);
  const traceback = tracebackOf(details);
  return (
    <div className="error tone-bad">
      {!(isShownAbove && traceback !== undefined) && (
        <>
          <p className="wrap">{isShort ? message.slice(0, SHORT_MAX) : message}</p>
          <p className="quiet row">
            <code>{code}</code>
            {kind !== undefined && kind !== code && <span>{kind.replaceAll("_", " ")}</span>}
            {status !== undefined && <span>HTTP {status}</span>}
            {attempt !== undefined && attempt > 1 && <span>after {attempt} attempts</span>}
            {retryable !== undefined && (
              <span>{retryable ? "trying again may help" : "trying again will not help"}</span>
            )}
          </p>
        </>
      )}
      {!isShort && traceback !== undefined && (
        <>
          <div className="part-head">
            <h3>Traceback</h3>
            <CopyButton label="Copy traceback" text={traceback} />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
          <section className="log" tabIndex={0} aria-label="Traceback">
            <pre>{traceback}</pre>
          </section>
        </>
      )}
      {!isShort && traceback === undefined && details !== undefined && <JsonView label="Details" value={details} />}
    </div>
  );
}

/** Whether two errors are the same, or `shown` is a shortened form of the other. */
export function isSameError(error: object, shown: object | undefined): boolean {
  const [one, other] = [error as TaskFailure, shown as TaskFailure | undefined];
  return one.code === other?.code && one.message === other.message && one.message.length <= SHORT_MAX;
}

/** Details without the cause that the message contains already. */
function remainingDetails({ message, details }: TaskFailure): unknown {
  if (typeof details !== "object" || details === null || !("cause" in details)) return details;
  const { cause, ...rest } = details;
  return typeof cause === "string" && message.includes(cause) ? rest : details;
}

/** The traceback among an error's details, or undefined. */
export function tracebackOf(details: unknown): string | undefined {
  if (typeof details !== "object" || details === null) return undefined;
  const { traceback } = details as { traceback?: unknown };
  return typeof traceback === "string" ? traceback : undefined;
}
