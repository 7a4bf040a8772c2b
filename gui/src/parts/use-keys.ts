import { useLayoutEffect, useRef } from "react";
import { isWriting } from "./writing.ts";

/**
 * Calls `onKey` for each key that is pressed alone, while the user is not typing in a field. It listens from the moment in
 * which the component is drawn until it is removed: an ordinary effect would begin after the browser has painted, and a key
 * pressed at once would be lost.
 */
export function useKeys(onKey: (event: KeyboardEvent) => void): void {
  const current = useRef(onKey);
  useLayoutEffect(() => {
    current.current = onKey;
  });
  useLayoutEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && !isWriting(event.target)) current.current(event);
    };
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, []);
}
