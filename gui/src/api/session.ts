/**
 * How this page authenticates. Behind the gateway by its cookie, which no script can read; at a server with tokens by the one
 * that was typed in, kept for this tab only.
 */

const KEY = "flow.token";

/** What stands before each path, behind a reverse proxy that has put one there: `/flow`, or nothing. */
export const PUBLIC_PATH = metaOf("flow-path") ?? "";

/** Prefix under which the API stands, after {@link PUBLIC_PATH}: `/api` at a server, `/flow` behind the gateway. */
export const API_PREFIX = metaOf("flow-api") ?? "/api";

/** True behind the gateway: people log in with their identity provider. */
export const HAS_LOGIN = API_PREFIX !== `${PUBLIC_PATH}/api`;

/** The bearer token of this tab, or undefined. */
export function sessionToken(): string | undefined {
  return sessionStorage.getItem(KEY) ?? undefined;
}

/** Keeps the token of this tab, or forgets it. */
export function keepToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, token);
}

/** The headers that authenticate the caller. */
export function authorization(): Record<string, string> {
  const token = sessionToken();
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The address of a path of the API, `/api/executions`, here. */
export function addressOf(path: string): string {
  return path.startsWith("/api/") ? API_PREFIX + path.slice("/api".length) : path;
}

/** The path of the browser's address within the page, without what stands before it. */
export function ownPath(pathname: string): string {
  return pathname.startsWith(`${PUBLIC_PATH}/`) ? pathname.slice(PUBLIC_PATH.length) : pathname;
}

function metaOf(name: string): string | undefined {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
}
