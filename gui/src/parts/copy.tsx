import { type ReactNode, useState } from "react";

/** Puts a text on the clipboard, and says that it did. A text that is costly to make is given as a function. */
export function CopyButton({ label, text }: { label: string; text: string | (() => string) }): ReactNode {
  const [status, setStatus] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setStatus("copied");
    } catch {
      // Pages that do not come over https or from this machine have no clipboard.
      setStatus("this page may not use the clipboard");
    }
    setTimeout(() => setStatus(""), 2_000);
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {label}
      <span role="status">{status}</span>
    </button>
  );
}
