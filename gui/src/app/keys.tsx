import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import { useKeys } from "../parts/use-keys.ts";

/** Pages by the letter that follows `g`. */
const PAGES = {
  h: { to: "/", name: "home" },
  e: { to: "/executions", name: "executions" },
  c: { to: "/catalog", name: "playbooks" },
  r: { to: "/register", name: "register a document" },
  t: { to: "/triggers", name: "triggers" },
  i: { to: "/inbox", name: "inbox" },
  a: { to: "/agents", name: "agents" },
  o: { to: "/operations", name: "workers and queues" },
  k: { to: "/credentials", name: "credentials" },
  u: { to: "/access", name: "access: users, roles, audit" },
} as const;

/** What the keys do, for people. */
const HELP: readonly { title: string; keys: readonly (readonly [keys: string, what: string])[] }[] = [
  { title: "Go to", keys: Object.entries(PAGES).map(([key, { name }]) => [`g ${key}`, name] as const) },
  {
    title: "In lists",
    keys: [
      ["/", "to the filter"],
      ["j", "next row"],
      ["k", "previous row"],
      ["Enter", "open the row"],
      ["x", "mark the row, to change it with others"],
      ["Esc", "leave the rows, or the filter"],
    ],
  },
  {
    title: "Everywhere",
    keys: [
      ["Ctrl K", "search, or run a command"],
      ["?", "this help"],
    ],
  },
];
/** A second key counts for so long. */
const SECOND_MS = 1_200;

/** What the page's keys open. */
export interface PageKeys {
  onHelp(): void;
  onPalette(): void;
}

/** The page's keys. They do nothing while the user types in a field, but for the palette's. */
export function usePageKeys({ onHelp, onPalette }: PageKeys): void {
  const navigate = useNavigate();
  const gAt = useRef(Number.NEGATIVE_INFINITY);
  useKeys((event) => {
    // The time of the key press counts, not the time at which a busy page handles it.
    const isSecond = event.timeStamp - gAt.current < SECOND_MS;
    gAt.current = Number.NEGATIVE_INFINITY;
    const page = isSecond ? Object.entries(PAGES).find(([key]) => key === event.key)?.[1] : undefined;
    if (page !== undefined) void navigate({ to: page.to });
    else if (event.key === "g") gAt.current = event.timeStamp;
    else if (event.key === "?") onHelp();
    else if (event.key === "/") {
      const filter = document.querySelector<HTMLInputElement>("[data-filter]");
      if (filter === null) return;
      event.preventDefault();
      filter.focus();
      filter.select();
    }
  });
  const palette = useRef(onPalette);
  useLayoutEffect(() => {
    palette.current = onPalette;
  });
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === "Escape" && isFilter(event.target)) event.target.blur();
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      palette.current();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}

/** All keys. */
export function HelpDialog({ onClose }: { onClose(): void }): ReactNode {
  const shown = (dialog: HTMLDialogElement | null) => {
    if (dialog?.open === false) dialog.showModal();
  };
  return (
    <dialog ref={shown} aria-labelledby="keys-title" onClose={onClose}>
      <div className="stack">
        <h1 id="keys-title">Keys</h1>
        <div className="help-list">
          {HELP.map(({ title, keys }) => (
            <section key={title}>
              <h2>{title}</h2>
              <dl className="facts">
                {keys.map(([key, what]) => (
                  <div key={key} className="fact">
                    <dt>
                      <kbd>{key}</kbd>
                    </dt>
                    <dd>{what}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
    </dialog>
  );
}

function isFilter(target: EventTarget | null): target is HTMLInputElement {
  return target instanceof HTMLInputElement && target.dataset["filter"] !== undefined;
}
