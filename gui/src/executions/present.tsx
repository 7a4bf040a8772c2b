import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { overview } from "../api/queries.ts";
import type { ExecutionItem, Overview } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { useNow } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { clockText, durationText } from "../parts/time.ts";

/** Why commands of executions wait for a worker, by the execution's id. */
export type WhyQueued = ReadonlyMap<string, string>;

type QueueGroup = NonNullable<Overview["queue"]>["groups"][number];

/** Read only while some row waits for a worker, and by those who may see workers. */
export function useWhyQueued(rows: readonly ExecutionItem[]): WhyQueued {
  const may = useAllowed("view_operations").allowed;
  const isAsked = may && rows.some(({ now }) => now?.does === "queues");
  const { data } = useQuery({ ...overview(), enabled: isAsked });
  const groups = isAsked ? data?.queue?.groups : undefined;
  return useMemo(
    () => new Map((groups ?? []).flatMap((group) => group.execution_ids.map((id) => [id, whyText(group)] as const))),
    [groups],
  );
}

function whyText({ why, kinds, labels }: QueueGroup): string {
  const asked = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${String(value)}`);
  switch (why) {
    case "no_worker":
      return "No worker";
    case "no_kind":
      return `No worker for ${kinds.join(", ")}`;
    case "no_labels":
    case "no_both":
      return `No worker with ${asked.join(", ")}`;
    case "busy":
      return "Workers are busy";
    default:
      return "Queued";
  }
}

/** An execution's state as it is told in a list: not only that it runs, but what it waits for. */
export function PresentStatus({
  of: { status, now },
  why = "Queued",
}: {
  of: ExecutionItem;
  why: string | undefined;
}): ReactNode {
  if (status === "PENDING") return <Status of="PENDING" word={why} />;
  if (status !== "RUNNING" || now === undefined || now.does === "runs") return <Status of={status} />;
  if (now.does === "queues") return <Status of={status} look="WAITING" word={why} />;
  return <Status of={status} look="WAITING" word={<WaitWord wait={now.wait} />} />;
}

function WaitWord({ wait }: { wait: NonNullable<ExecutionItem["now"]>["wait"] }): ReactNode {
  const current = useNow();
  const leftMs = wait?.until == null ? undefined : Math.max(0, Date.parse(wait.until) - current);
  if (wait === undefined) return "Waiting";
  if (wait.kind === "retry") return leftMs === undefined ? "Retrying" : `Retrying in ${secondsText(leftMs)}`;
  if (wait.kind === "timer") return leftMs === undefined ? "Waiting" : `Waiting ${secondsText(leftMs)}`;
  return wait.kind === "approval" ? "Waiting for approval" : `Waiting for ${wait.name ?? wait.kind}`;
}

/** Whole seconds: what counts down has no fractions. */
function secondsText(ms: number): string {
  return ms < 60_000 ? `${Math.ceil(ms / 1_000)} s` : durationText(ms);
}

/** What an execution does at the moment, or why it ended as it did. */
export function NowOrWhy({ of: { status, now, progress, error } }: { of: ExecutionItem }): ReactNode {
  if (error !== null) {
    const step = typeof error["step"] === "string" ? error["step"] : undefined;
    return (
      <>
        {status === "FAILED" && step !== undefined && `${step} · `}
        {status === "FAILED" && <span className="code">{error.code} </span>}
        {error.message}
      </>
    );
  }
  const isOpen = status === "RUNNING" || status === "PAUSED";
  return (
    <>
      {isOpen && progress > 0 && (
        <span className="bar" title={`${progress} %`}>
          <span style={{ width: `${progress}%` }} />
        </span>
      )}
      {now?.step}
      {now?.wait?.until != null &&
        (now.wait.kind === "timer" || now.wait.kind === "signal") &&
        ` · until ${untilText(now.wait.until)}`}
    </>
  );
}

/** The time of day, with the date where it is another day. */
function untilText(at: string): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const time = clockText(date.getTime()).slice(0, 5);
  return isToday ? time : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${time}`;
}

/** What started an execution, in a few words. */
export function StartedBy({ by }: { by: ExecutionItem["started_by"] }): ReactNode {
  if (by === undefined) return null;
  switch (by.kind) {
    case "trigger":
      return by.name ?? "a trigger";
    case "execution":
      return `called by ${by.name ?? "another"}`;
    case "rerun":
      return "rerun";
    case "bulk":
      return "bulk rerun";
    case "mcp":
      return `agent of ${by.name ?? "a user"}`;
    default:
      return by.name;
  }
}
