/**
 * The page to go on to after a login: `to` where it is an address of this page, else the first one. Whatever a browser could
 * take for another place is none: `//evil.example`, `/\evil.example`, `javascript:`, and what comes to one of these only when
 * its dots are taken out, `/.//evil.example`.
 */
export function returnTo(to: string | undefined): string {
  if (to === undefined || !to.startsWith("/") || !URL.canParse(to, location.origin)) return "/";
  const { origin, pathname, search, hash } = new URL(to, location.origin);
  if (origin !== location.origin || pathname.startsWith("//") || pathname === "/login") return "/";
  return pathname + search + hash;
}
