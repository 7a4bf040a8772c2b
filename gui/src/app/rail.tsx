import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import {
  BookText,
  Bot,
  CalendarClock,
  Cpu,
  Ellipsis,
  House,
  Inbox,
  KeyRound,
  List,
  type LucideIcon,
  PanelLeftClose,
  PanelLeftOpen,
  Users,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import { myApprovals } from "../api/approvals.ts";
import { useSections } from "../parts/allowed.ts";
import { Menu } from "../parts/menu.tsx";
import { useIsNarrow } from "../parts/use-narrow.ts";
import { Account, AccountPanel } from "./account.tsx";
import { Brand } from "./brand.tsx";
import { chooseRail, chosenRail } from "./scheme.ts";

/** A page in the rail. `also`: first segments of addresses that belong to it too. */
interface Entry {
  to:
    | "/"
    | "/executions"
    | "/catalog"
    | "/triggers"
    | "/inbox"
    | "/agents"
    | "/operations"
    | "/credentials"
    | "/access";
  name: string;
  Sign: LucideIcon;
  also?: readonly string[];
}

const WORK: readonly Entry[] = [
  { to: "/", name: "Home", Sign: House },
  { to: "/executions", name: "Executions", Sign: List },
  { to: "/catalog", name: "Playbooks", Sign: BookText, also: ["entry", "register"] },
  { to: "/triggers", name: "Triggers", Sign: CalendarClock },
  { to: "/inbox", name: "Inbox", Sign: Inbox },
  { to: "/agents", name: "Agents", Sign: Bot },
];
const OPERATE = {
  operations: { to: "/operations", name: "Workers & queues", Sign: Cpu },
  credentials: { to: "/credentials", name: "Credentials", Sign: KeyRound },
  access: { to: "/access", name: "Access", Sign: Users },
} as const satisfies Record<string, Entry>;
/** What stands in the bar of a phone; the others open with *More*. */
const OF_PHONES: readonly string[] = ["/", "/executions", "/inbox"];

/** The pages, at the left; on phones a bar below. */
export function Rail({ onKeys }: { onKeys(): void }): ReactNode {
  const isNarrow = useIsNarrow();
  const sections = useSections();
  const operate = (["operations", "credentials", "access"] as const)
    .filter((section) => sections[section])
    .map((section) => OPERATE[section]);
  if (isNarrow) return <PhoneBar operate={operate} onKeys={onKeys} />;
  return (
    <div className="rail">
      <Brand />
      <nav aria-label="Pages">
        {WORK.map((entry) => (
          <RailLink key={entry.to} {...entry} />
        ))}
        {operate.length > 0 && (
          <>
            <hr />
            <h2>Operate</h2>
          </>
        )}
        {operate.map((entry) => (
          <RailLink key={entry.to} {...entry} />
        ))}
      </nav>
      <div className="end">
        <Collapse />
        <Account onKeys={onKeys} />
      </div>
    </div>
  );
}

function PhoneBar({ operate, onKeys }: { operate: readonly Entry[]; onKeys(): void }): ReactNode {
  const more = [...WORK.filter(({ to }) => !OF_PHONES.includes(to)), ...operate];
  return (
    <div className="rail">
      <nav aria-label="Pages">
        {WORK.filter(({ to }) => OF_PHONES.includes(to)).map((entry) => (
          <RailLink key={entry.to} {...entry} />
        ))}
        <Menu
          label={
            <>
              <Ellipsis className="icon" aria-hidden="true" />
              More
            </>
          }
        >
          {more.map(({ to, name, Sign }) => (
            <Link key={to} to={to}>
              <Sign className="icon" aria-hidden="true" />
              {name}
            </Link>
          ))}
          <hr />
          <AccountPanel onKeys={onKeys} />
        </Menu>
      </nav>
    </div>
  );
}

function RailLink({ to, name, Sign, also = [] }: Entry): ReactNode {
  const { pathname } = useLocation();
  const isHere = also.includes(pathname.split("/")[1] ?? "");
  return (
    <Link
      to={to}
      activeOptions={{ includeSearch: false, exact: to === "/" }}
      className={isHere ? "on" : ""}
      title={name}
    >
      <Sign className="icon" aria-hidden="true" />
      <span className="name">{name}</span>
      {to === "/inbox" && <WaitingCount />}
    </Link>
  );
}

/** How many approvals wait for the person who looks. */
function WaitingCount(): ReactNode {
  const { data } = useQuery(myApprovals());
  const count = data?.approvals.length ?? 0;
  if (count === 0) return null;
  return (
    <span className="count hot">
      {count}
      {data?.next_cursor != null && "+"}
      <span className="unseen"> waiting for you</span>
    </span>
  );
}

function Collapse(): ReactNode {
  const [isCollapsed, setCollapsed] = useState(() => chosenRail() === "narrow");
  const Sign = isCollapsed ? PanelLeftOpen : PanelLeftClose;
  const name = isCollapsed ? "Widen the menu" : "Collapse the menu";
  return (
    <button
      type="button"
      aria-label={name}
      title={name}
      onClick={() => {
        chooseRail(isCollapsed ? "wide" : "narrow");
        setCollapsed(!isCollapsed);
      }}
    >
      <Sign className="icon" aria-hidden="true" />
      <span className="name">Collapse</span>
    </button>
  );
}
