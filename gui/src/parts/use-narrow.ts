import { useSyncExternalStore } from "react";

/** Widths at which pages change: a phone's, and that from which two things stand side by side. The styles say the same. */
const NARROWER = {
  720: matchMedia("(max-width: 720px)"),
  1100: matchMedia("(max-width: 1099px)"),
};

/** Whether the page is narrower than so many pixels, a phone's width by default; followed while it changes. */
export function useIsNarrow(than: keyof typeof NARROWER = 720): boolean {
  const query = NARROWER[than];
  return useSyncExternalStore(than === 720 ? followPhone : followBeside, () => query.matches);
}

const followPhone = (listener: () => void) => follow(NARROWER[720], listener);
const followBeside = (listener: () => void) => follow(NARROWER[1100], listener);

function follow(query: MediaQueryList, listener: () => void): () => void {
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}
