import { useSyncExternalStore } from "react";

/** Below this the page is that of a phone; the styles say the same. */
const NARROW = matchMedia("(max-width: 720px)");

/** Whether the page is as narrow as a phone; followed while it changes. */
export function useIsNarrow(): boolean {
  return useSyncExternalStore(follow, () => NARROW.matches);
}

function follow(listener: () => void): () => void {
  NARROW.addEventListener("change", listener);
  return () => NARROW.removeEventListener("change", listener);
}
