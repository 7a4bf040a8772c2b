import { CalendarClock, type LucideIcon, RadioTower, Send, Webhook, Workflow } from "lucide-react";
import type { ReactNode } from "react";
import type { TriggerItem } from "../api/triggers.ts";

/** Kinds of triggers, with a sign and a word for each. */
export const KINDS: Readonly<Record<TriggerItem["kind"], { name: string; Sign: LucideIcon }>> = {
  schedule: { name: "Schedule", Sign: CalendarClock },
  webhook: { name: "Webhook", Sign: Webhook },
  execution: { name: "Execution end", Sign: Workflow },
  nats: { name: "NATS stream", Sign: RadioTower },
  signal: { name: "Signal", Sign: Send },
};

/** The kind of a trigger. */
export function Kind({ of }: { of: TriggerItem["kind"] }): ReactNode {
  const { name, Sign } = KINDS[of];
  return (
    <span className="kind">
      <Sign className="icon" aria-hidden="true" />
      {name}
    </span>
  );
}

/** Whether it fires. */
export function OnOff({ enabled }: { enabled: boolean }): ReactNode {
  return <span className={`status tone-${enabled ? "good" : "quiet"} on-off`}>{enabled ? "On" : "Off"}</span>;
}
