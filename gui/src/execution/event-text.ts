import type { EventRecord } from "../api/types.ts";

/** What is worth knowing of an event in one line. */
export function eventText(event: EventRecord): string {
  const { error, worker, attempt, duration_ms: durationMs } = event as EventRecord & Record<string, unknown>;
  const parts: string[] = [];
  if (typeof worker === "string") parts.push(`on ${worker}`);
  if (typeof attempt === "number" && attempt > 1) parts.push(`attempt ${attempt}`);
  if (typeof durationMs === "number") parts.push(`${durationMs} ms`);
  if (isRecord(error) && typeof error["message"] === "string") parts.push(error["message"]);
  return parts.join(", ").slice(0, 300);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
