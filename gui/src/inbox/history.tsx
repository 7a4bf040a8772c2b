import { useQuery } from "@tanstack/react-query";
import { Bell, Check, CircleHelp, type LucideIcon, TrendingUp, X } from "lucide-react";
import type { ReactNode } from "react";
import { isJsonObject, type JsonObject } from "../../../src/schema/words/json.ts";
import type { Approval } from "../api/approvals.ts";
import { api } from "../api/client.ts";
import type { EventRecord } from "../api/types.ts";
import { JsonView } from "../parts/json/view.tsx";
import { Ago } from "../parts/now.tsx";
import { durationText } from "../parts/time.ts";

/** Something that happened to an approval. */
interface Moment {
  at: string;
  tone: "good" | "bad" | "warn" | "quiet";
  Sign: LucideIcon;
  what: string;
  comment?: string | undefined;
  data?: unknown;
}

/** What has happened to an approval, the newest first: the decisions, and of its log the reminders and the escalation. */
export function ApprovalHistory({ approval }: { approval: Approval }): ReactNode {
  const events = useQuery(approvalEvents(approval)).data ?? [];
  const moments = [...momentsOf(approval), ...events.flatMap((event) => momentOfEvent(event, approval))];
  const isEscalated = moments.some(({ Sign }) => Sign === TrendingUp);
  const asked = events.map((event) => requestOf(event, approval)).find((request) => request !== undefined);
  return (
    <section className="card" data-part="approval-history">
      <header>
        <h2>History</h2>
        {approval.status === "open" && !isEscalated && <span className="aside">{plannedText(approval, asked)}</span>}
      </header>
      <ul className="lines">
        {moments
          .toSorted((one, other) => Date.parse(other.at) - Date.parse(one.at))
          .map(({ at, tone, Sign, what, comment, data }) => (
            <li key={`${at} ${what}`} className={`tone-${tone}`}>
              <Sign className="icon toned" aria-hidden="true" />
              <span>
                <b>{what}</b>
                {comment !== undefined && <small className="wrap">{comment}</small>}
                {data !== undefined && <JsonView label="Answer" value={data} />}
              </span>
              <span className="quiet">
                <Ago at={at} />
              </span>
            </li>
          ))}
      </ul>
    </section>
  );
}

function momentsOf({ decisions, opened_at: openedAt, closed_at: closedAt, status }: Approval): Moment[] {
  return [
    { at: openedAt, tone: "quiet", Sign: CircleHelp, what: "Asked" },
    ...decisions.map(({ decision, by, at, comment, data }): Moment => {
      const [tone, Sign, word] =
        decision === "approve" ? (["good", Check, "Approved"] as const) : (["bad", X, "Rejected"] as const);
      return { at, tone, Sign, what: `${word} by ${by}`, comment, data };
    }),
    ...(closedAt !== undefined && (status === "expired" || status === "cancelled")
      ? [
          {
            at: closedAt,
            tone: "quiet",
            Sign: X,
            what: status === "expired" ? "Expired" : "Cancelled",
          } satisfies Moment,
        ]
      : []),
  ];
}

/** How many events of a step are looked at. */
const EVENTS_MAX = "200";

/** What the log says of it, for who may see the playbook: what was asked for, and reminders and escalation. */
function approvalEvents({ approval_id: id, execution_id: executionId, step }: Approval) {
  return {
    queryKey: ["approvals", "events", id],
    retry: false,
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const read = async (filter: { q: string } | { event_type: string }) =>
        (
          await api("GET /api/executions/:execution_id/events", {
            params: { execution_id: executionId },
            query: { ...filter, step, order: "desc", limit: EVENTS_MAX },
            signal,
          })
        ).events;
      const [told, parked] = await Promise.all([read({ q: "approval." }), read({ event_type: "command.parked" })]);
      return [...told, ...parked];
    },
  };
}

function momentOfEvent(
  { event_type: type, created_at: at, meta }: EventRecord,
  { approval_id: id }: Approval,
): Moment[] {
  if (meta?.["approval_id"] !== id) return [];
  if (type === "approval.reminded") return [{ at, tone: "quiet", Sign: Bell, what: "A reminder was due" }];
  if (type !== "approval.escalated") return [];
  return [{ at, tone: "warn", Sign: TrendingUp, what: `Escalated: ${peopleText(meta["to"])} may decide too` }];
}

/** What the step asked for, of the event by which it was parked. */
function requestOf({ meta, ...event }: EventRecord, { iteration }: Approval): JsonObject | undefined {
  const wait = meta?.["wait"];
  if (event["iteration"] !== iteration) return undefined;
  return isJsonObject(wait) && wait["kind"] === "approval" ? wait : undefined;
}

/** `Escalates 1 d 0 h after it was asked, to the role head_of_ops`. */
function plannedText({ opened_at: openedAt }: Approval, asked: JsonObject | undefined): ReactNode {
  const escalate = asked?.["escalate"];
  const remind = asked?.["remind_ms"];
  if (isJsonObject(escalate) && typeof escalate["after_ms"] === "number") {
    const at = new Date(Date.parse(openedAt) + escalate["after_ms"]).toISOString();
    return (
      <>
        Escalates to {peopleText(escalate["to"])} <Ago at={at} />
      </>
    );
  }
  return typeof remind === "number" && `A reminder every ${durationText(remind)}`;
}

function peopleText(to: unknown): string {
  if (!isJsonObject(to)) return "others";
  const names = (key: string) => (Array.isArray(to[key]) ? to[key].map(String) : []);
  const [roles, users] = [names("roles"), names("users")];
  return [...roles.map((role) => `the role ${role}`), ...users].join(", ") || "others";
}
