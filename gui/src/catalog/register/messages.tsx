import type { ReactNode } from "react";
import type { Validation } from "../../api/types.ts";
import type { EditorTarget } from "../../parts/editor/editor.tsx";

/** What is wrong with a text. A click goes to the place. */
export function Messages({
  messages,
  isRefused,
  onGoTo,
}: {
  messages: Validation["messages"];
  /** The user tried to register it: the reason why it was refused. */
  isRefused: boolean;
  onGoTo(target: EditorTarget): void;
}): ReactNode {
  const errors = messages.filter(({ severity }) => severity === "error").length;
  const tone = errors > 0 ? "tone-bad" : messages.length > 0 ? "tone-warn" : "tone-good";
  return (
    <section className={`panel ${tone}`} role={isRefused ? "alert" : undefined} aria-label="Messages">
      <h2>{titleOf(errors, messages.length - errors, isRefused)}</h2>
      {messages.length > 0 && (
        <ol className="messages">
          {messages.map((message) => (
            <li key={`${message.line}:${message.column}:${message.code}:${message.message}`}>
              <button
                type="button"
                className="plain mono"
                onClick={() => onGoTo({ line: message.line, column: message.column })}
              >
                <span className="unseen">To line </span>
                {message.line}:{message.column}
              </button>
              <span className={`status tone-${message.severity === "error" ? "bad" : "warn"}`}>{message.severity}</span>
              <span className="wrap">
                {message.message}
                {message.hint !== undefined && <span className="quiet"> {message.hint}</span>}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function titleOf(errors: number, warnings: number, isRefused: boolean): string {
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const counts = [errors > 0 && count(errors, "error"), warnings > 0 && count(warnings, "warning")].filter(Boolean);
  if (counts.length === 0) return "No problems found";
  return isRefused && errors > 0 ? `Not registered: ${counts.join(", ")}` : counts.join(", ");
}
