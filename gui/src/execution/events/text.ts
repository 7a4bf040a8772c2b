/** An event of the API, as far as its line looks at it. */
interface EventRecord {
  event_type: string;
  meta?: unknown;
  omitted?: readonly string[];
}

/** Types of events, in the order in which they come to be. */
export const EVENT_TYPES: readonly string[] = [
  "playbook.initialized",
  "workflow.restored",
  "workflow.initialized",
  "command.issued",
  "command.claimed",
  "command.started",
  "command.parked",
  "command.woken",
  "command.completed",
  "command.failed",
  "command.cancelled",
  "task.progress",
  "task.done",
  "call.done",
  "call.error",
  "loop.started",
  "loop.iteration.completed",
  "loop.iteration.failed",
  "loop.results.stored",
  "loop.results.kept",
  "loop.done",
  "next.evaluated",
  "step.completed",
  "step.failed",
  "step.skipped",
  "workflow.completed",
  "workflow.failed",
  "playbook.completed",
  "playbook.failed",
  "execution.cancelled",
  "execution.paused",
  "execution.resumed",
  "step.overridden",
  "signal.received",
  "approval.opened",
  "approval.decided",
  "approval.reminded",
  "approval.escalated",
  "approval.notified",
  "approval.closed",
  "batch.accepted",
  "batch.completed",
];

/** What is worth knowing of an event in one line. */
export function eventText(event: EventRecord): string {
  const { error, worker, attempt, iteration, duration_ms: durationMs } = event as EventRecord & Record<string, unknown>;
  const parts = steeringParts(event);
  if (typeof iteration === "number") parts.push(`iteration ${iteration}`);
  if (typeof worker === "string") parts.push(`on ${worker}`);
  if (typeof attempt === "number" && attempt > 1) parts.push(`attempt ${attempt}`);
  if (typeof durationMs === "number") parts.push(`${Math.round(durationMs)} ms`);
  const until = isRecord(event.meta) ? event.meta["wake_at"] : undefined;
  if (typeof until === "string") parts.push(`until ${until}`);
  if (isRecord(error) && typeof error["message"] === "string") parts.push(error["message"]);
  if (event.omitted?.includes("result") === true) parts.push("long result");
  return parts.join(", ").slice(0, 300);
}

/** What people have done to the execution, and what a rerun begins with. Empty for other events, and where a long `meta` was left out. */
function steeringParts({ event_type: type, meta }: EventRecord): string[] {
  if (!isRecord(meta)) return [];
  const by = typeof meta["by"] === "string" ? [`by ${meta["by"]}`] : [];
  const why = typeof meta["reason"] === "string" ? [meta["reason"]] : [];
  switch (type) {
    case "execution.paused":
      return [meta["cascade"] === true ? "with what it has called" : "it alone", ...by, ...why];
    case "execution.resumed":
      return [...by, ...why];
    case "step.overridden": {
      const done = OVERRIDDEN[String(meta["action"])] ?? "ended by hand";
      const what = typeof meta["iteration"] === "number" ? `iteration ${meta["iteration"]} ${done}` : done;
      return [what, ...by, ...why];
    }
    case "signal.received":
      return [signalText(meta["name"], meta["key"]), ...by];
    case "command.parked":
      return isRecord(meta["wait"]) ? waitParts(meta["wait"]) : [];
    case "approval.decided":
      return [meta["decision"] === "approve" ? "approved" : "rejected", ...by];
    case "approval.closed":
      return [String(meta["outcome"])];
    case "playbook.initialized":
      return isRecord(meta["rerun"]) ? rerunParts(meta["rerun"]) : [];
    case "workflow.restored": {
      const waiting = Array.isArray(meta["waiting"]) ? meta["waiting"].map(String) : [];
      return [waiting.length === 0 ? "nothing is left to run" : `goes on with ${waiting.join(", ")}`];
    }
    case "loop.results.kept":
      return [`${keptCount(meta["iterations"]).toLocaleString("en-US")} iterations reused`];
    default:
      return isRecord(meta["reused_from"]) ? [`reused from ${meta["reused_from"]["execution_id"]}`] : [];
  }
}

function waitParts({ kind, name, key, title }: Record<string, unknown>): string[] {
  if (kind === "signal") return [`for signal ${signalText(name, key)}`];
  return kind === "approval" ? [`for approval: ${title}`] : [];
}

function signalText(name: unknown, key: unknown): string {
  return typeof key === "string" ? `${name}, key ${key}` : String(name);
}

const OVERRIDDEN: Readonly<Record<string, string>> = {
  skip: "skipped by hand",
  complete: "completed by hand",
  fail: "failed by hand",
};

function rerunParts({ execution_id: original, from, by, reason }: Record<string, unknown>): string[] {
  const steps = Array.isArray(from) ? from.map(String).join(", ") : "the start";
  return [
    `repeats ${original} from ${steps}`,
    ...(typeof by === "string" ? [`by ${by}`] : []),
    ...(typeof reason === "string" ? [reason] : []),
  ];
}

/** Ranges without their ends. */
function keptCount(ranges: unknown): number {
  if (!Array.isArray(ranges)) return 0;
  return ranges.reduce(
    (sum: number, range) => sum + (Array.isArray(range) ? Number(range[1]) - Number(range[0]) : 0),
    0,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
