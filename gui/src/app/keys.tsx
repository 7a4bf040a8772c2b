import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";

/** What one key, or `g` and a letter, does. */
const HELP: readonly (readonly [keys: string, what: string])[] = [
  ["/", "to the filter"],
  ["j  k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "mark the row"],
  ["g e", "executions"],
  ["g c", "catalog"],
  ["g a", "agents"],
  ["g o", "operations"],
  ["?", "this help"],
];
const PAGES: Readonly<Record<string, "/executions" | "/catalog" | "/agents" | "/operations">> = {
  e: "/executions",
  c: "/catalog",
  a: "/agents",
  o: "/operations",
};
/** A second key counts for so long. */
const SECOND_MS = 1_200;

/** The page's keys, and the list of them. Nothing happens while somebody writes. */
export function KeyHelp(): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const navigate = useNavigate();
  useEffect(() => {
    let gAt = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      const isSecond = Date.now() - gAt < SECOND_MS;
      gAt = 0;
      const page = isSecond ? PAGES[event.key] : undefined;
      if (page !== undefined) void navigate({ to: page });
      else if (event.key === "g") gAt = Date.now();
      else if (event.key === "?") dialog.current?.showModal();
      else if (event.key === "/") {
        const filter = document.querySelector<HTMLInputElement>("[data-filter]");
        if (filter === null) return;
        event.preventDefault();
        filter.focus();
        filter.select();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [navigate]);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h1 id="keys-title">Keys</h1>
      <dl className="facts">
        {HELP.map(([keys, what]) => (
          <div key={keys} className="row">
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

/** Whether keys are text here. */
export function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable], dialog") !== null;
}
