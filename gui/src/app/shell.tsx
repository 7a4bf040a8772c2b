import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Play, Search } from "lucide-react";
import { lazy, type ReactNode, Suspense, useEffect, useLayoutEffect, useState } from "react";
import { lockedOut } from "../api/queries.ts";
import { HAS_LOGIN, ownPath } from "../api/session.ts";
import { NoRoleYet } from "../login/who.tsx";
import { titleText } from "../parts/title.ts";
import { Brand } from "./brand.tsx";
import { HelpDialog, usePageKeys } from "./keys.tsx";
import { Rail } from "./rail.tsx";
import { ReachBand } from "./reach-band.tsx";
import { TokenDialog } from "./token-dialog.tsx";

const loadPalette = async () => ({ default: (await import("./palette.tsx")).Palette });
const Palette = lazy(loadPalette);
/** Once the page is there, the palette is loaded too: what is typed before it is open would go to the page's keys. */
const PALETTE_AFTER_MS = 2_000;

/** What is open over the page. */
type Over = "token" | "keys" | "palette";

/** What stands around every page. */
export function Shell(): ReactNode {
  const [over, setOver] = useState<Over | undefined>();
  const navigate = useNavigate();
  // Before the login there is nowhere to go.
  const isLogin = useLocation().pathname === "/login";
  useTitleOfAddress();
  useEffect(() => {
    // What fails now is tried again when it is opened.
    const timer = setTimeout(() => void loadPalette().catch(() => undefined), PALETTE_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  usePageKeys({ onHelp: () => setOver("keys"), onPalette: () => setOver("palette") });
  useEffect(() => {
    const ask = () => {
      if (!HAS_LOGIN) setOver("token");
      else if (ownPath(location.pathname) !== "/login")
        void navigate({ to: "/login", search: { to: hereOf(location) } });
    };
    lockedOut.addEventListener("lockedout", ask);
    return () => lockedOut.removeEventListener("lockedout", ask);
  }, [navigate]);
  const close = () => setOver(undefined);
  return (
    <div className={isLogin ? "app alone" : "app"}>
      <a className="skip" href="#content">
        To the content
      </a>
      {!isLogin && <Rail onKeys={() => setOver("keys")} />}
      <div>
        {!isLogin && <Top onSearch={() => setOver("palette")} />}
        <ReachBand />
        <main id="content" tabIndex={-1}>
          {HAS_LOGIN && <NoRoleYet />}
          <Suspense fallback={<p className="quiet">Loading …</p>}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      {over === "token" && <TokenDialog onDone={close} />}
      {over === "keys" && <HelpDialog onClose={close} />}
      {over === "palette" && (
        <Suspense>
          <Palette onClose={close} onKeys={() => setOver("keys")} />
        </Suspense>
      )}
    </div>
  );
}

function Top({ onSearch }: { onSearch(): void }): ReactNode {
  return (
    <header className="top">
      <Brand />
      <button type="button" className="search-all" aria-keyshortcuts="Control+K" onClick={onSearch}>
        <Search className="icon" aria-hidden="true" />
        {/* A phone has room for the first word. */}
        <span>
          Search<span className="wide"> or run a command</span>
        </span>
        <span className="keys" aria-hidden="true">
          <kbd>Ctrl</kbd>
          <kbd>K</kbd>
        </span>
      </button>
      <span className="grow" />
      <Link to="/catalog" search={{ kind: "playbook" }} className="button main">
        <Play className="icon" aria-hidden="true" />
        Run playbook
      </Link>
    </header>
  );
}

/** Names in the browser's tab, by the first segment of the address and what follows it. */
const TITLES: Readonly<Record<string, string>> = {
  "": "Home",
  executions: "Executions",
  catalog: "Playbooks",
  register: "Register",
  triggers: "Triggers",
  inbox: "Inbox",
  agents: "Agents",
  operations: "Workers & queues",
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

function hereOf({ pathname, search }: Location): string {
  return ownPath(pathname) + search;
}
