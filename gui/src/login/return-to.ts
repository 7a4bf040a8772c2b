/**
 * The page to go on to after a login: `to` if it is an address of this page, else the first page. Anything that a browser could
 * take for another site is refused: `//evil.example`, `/\evil.example`, `javascript:`, and what becomes one of these when its
 * dots are removed, `/.//evil.example`.
 */
export function returnTo(to: string | undefined): string {
  if (to === undefined || !to.startsWith("/") || !URL.canParse(to, location.origin)) return "/";
  const { origin, pathname, search, hash } = new URL(to, location.origin);
  if (origin !== location.origin || pathname.startsWith("//") || pathname === "/login") return "/";
  return pathname + search + hash;
}
