import {
  Braces,
  Circle,
  Clock,
  CodeXml,
  Database,
  Globe,
  KeyRound,
  type LucideIcon,
  Plug,
  RadioTower,
  SquareTerminal,
  UserRound,
  Workflow,
} from "lucide-react";
import type { ReactNode } from "react";

/** A sign for each kind of tool. */
const SIGNS: Readonly<Record<string, LucideIcon>> = {
  http: Globe,
  python: CodeXml,
  shell: SquareTerminal,
  playbook: Workflow,
  wait: Clock,
  approval: UserRound,
  mcp: Plug,
  nats: RadioTower,
  postgres: Database,
  sqldb: Database,
  duckdb: Database,
  clickhouse: Database,
  snowflake: Database,
  transfer: Braces,
  secrets: KeyRound,
};

/** The sign of a step's tool; of several tools that of the first. */
export function ToolIcon({ kinds }: { kinds: readonly string[] }): ReactNode {
  const [kind] = kinds;
  if (kind === undefined) return <span className="icon" />;
  const Sign = SIGNS[kind] ?? Circle;
  return (
    <span className="tool-icon" title={kinds.join(", ")}>
      <Sign className="icon" aria-hidden="true" />
    </span>
  );
}
