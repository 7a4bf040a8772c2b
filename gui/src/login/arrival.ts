import { ownPath, PUBLIC_PATH } from "../api/session.ts";

/*
 * What a provider has sent this browser back with. Taken out of the address before anything else of the page looks at it, so
 * that a code stands in no history, and is not taken for a filter.
 */

let arrived = fromAddress();

/** Whether the browser returns from a provider, and its answer has not been read yet. */
export function isArriving(): boolean {
  return arrived !== undefined;
}

/** `code` and `state`, or `error`, as received, once; undefined without an answer of a provider. */
export function takeArrival(): URLSearchParams | undefined {
  const taken = arrived;
  arrived = undefined;
  return taken;
}

function fromAddress(): URLSearchParams | undefined {
  if (ownPath(location.pathname) !== "/login") return undefined;
  const given = new URLSearchParams(location.search);
  if (!given.has("state")) return undefined;
  history.replaceState(null, "", `${PUBLIC_PATH}/login`);
  return given;
}
