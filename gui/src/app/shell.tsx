import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { type ReactNode, Suspense, useEffect, useLayoutEffect, useState } from "react";
import { lockedOut } from "../api/queries.ts";
import { HAS_LOGIN, ownPath } from "../api/session.ts";
import { NoRoleYet, Who } from "../login/who.tsx";
import { useSections } from "../parts/allowed.ts";
import { titleText } from "../parts/title.ts";
import { KeyHelp } from "./keys.tsx";
import { ReachBand } from "./reach-band.tsx";
import { chooseScheme, chosenScheme, type Scheme } from "./scheme.ts";
import { TokenDialog } from "./token-dialog.tsx";

/** What stands around every page. */
export function Shell(): ReactNode {
  const [asksToken, setAsksToken] = useState(false);
  const navigate = useNavigate();
  const sections = useSections();
  // Before the login there is nowhere to go.
  const isLogin = useLocation().pathname === "/login";
  useTitleOfAddress();
  useEffect(() => {
    const ask = () => {
      if (!HAS_LOGIN) setAsksToken(true);
      else if (ownPath(location.pathname) !== "/login")
        void navigate({ to: "/login", search: { to: hereOf(location) } });
    };
    lockedOut.addEventListener("lockedout", ask);
    return () => lockedOut.removeEventListener("lockedout", ask);
  }, [navigate]);
  return (
    <>
      <a className="skip" href="#content">
        To the content
      </a>
      <header className="top">
        <Link to="/executions" className="brand">
          flow
        </Link>
        <nav aria-label="Pages">
          {!isLogin && (
            <>
              <Link to="/executions" activeOptions={{ includeSearch: false }}>
                Executions
              </Link>
              <Link to="/catalog">Catalog</Link>
              <Link to="/agents">Agents</Link>
              {sections.operations && <Link to="/operations">Operations</Link>}
              {sections.credentials && <Link to="/credentials">Credentials</Link>}
              {sections.access && <Link to="/access">Access</Link>}
            </>
          )}
        </nav>
        {HAS_LOGIN && <Who />}
        <SchemeChoice />
        <KeyHelp />
      </header>
      <ReachBand />
      <main id="content" tabIndex={-1}>
        {HAS_LOGIN && <NoRoleYet />}
        <Suspense fallback={<p className="quiet">Loading …</p>}>
          <Outlet />
        </Suspense>
      </main>
      {asksToken && <TokenDialog onDone={() => setAsksToken(false)} />}
    </>
  );
}

/** Names in the browser's tab, by the first segment of the address and what follows it. */
const TITLES: Readonly<Record<string, string>> = {
  executions: "Executions",
  catalog: "Catalog",
  register: "Register",
  agents: "Agents",
  operations: "Operations",
  credentials: "Credentials",
  access: "Access",
  login: "Log in",
};

/** A page's name before it knows more of itself: it names itself after this, and what is left of another page goes. */
function useTitleOfAddress(): void {
  const { pathname } = useLocation();
  useLayoutEffect(() => {
    const [, page = "", ...rest] = pathname.split("/");
    const about = rest.map(decoded).join("/");
    document.title = titleText(about === "" ? (TITLES[page] ?? "") : about);
  }, [pathname]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function SchemeChoice(): ReactNode {
  const [scheme, setScheme] = useState(chosenScheme);
  return (
    <label className="quiet">
      <span className="unseen">Colours</span>
      <select
        value={scheme}
        onChange={(event) => {
          chooseScheme(event.target.value as Scheme);
          setScheme(chosenScheme());
        }}
      >
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

function hereOf({ pathname, search }: Location): string {
  return ownPath(pathname) + search;
}
