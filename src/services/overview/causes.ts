import type { Cause, Overview } from "../../schema/api/overview.ts";
import { isInServer } from "../../schema/rules/pool-label.ts";
import { counted, finding, shellWord } from "../diagnosis/finding.ts";
import { pairs, poolAdvice } from "../diagnosis/pool-advice.ts";

/** What the causes are found in. */
export type Seen = Omit<Overview, "at" | "verdict">;

/** Name of the part that is the database itself. */
export const DATABASE_PART = "the database";

/** From when on something counts, milliseconds. */
export interface CauseLimits {
  /** Waiting for less is no trouble. */
  waitMs: number;
  /** A batch is worked out within milliseconds; one of this age is not. */
  batchMs: number;
  /** An answer of the database that takes longer holds every step up. */
  databaseMs: number;
}

/** Where nothing else is asked for. */
export const CAUSE_LIMITS: CauseLimits = { waitMs: 10_000, batchMs: 15_000, databaseMs: 250 };

/** Why work does not go on, the one to mend first being first: what keeps everything still, then what keeps some of it. */
export function causesOf(seen: Seen, limits: CauseLimits = CAUSE_LIMITS): Cause[] {
  return [
    ...missingParts(seen),
    ...batchesPileUp(seen, limits),
    ...noWorkers(seen),
    ...goneWorkers(seen),
    ...waitingWork(seen, limits),
    ...slowDatabase(seen, limits),
    ...brokerAway(seen),
  ].sort((left, right) => rank(left) - rank(right));
}

function rank({ level }: Cause): number {
  return level === "anomaly" ? 0 : 1;
}

type CauseInput = Parameters<typeof finding>[0] & { action?: "sweep" };

function cause({ action, ...input }: CauseInput): Cause {
  return { ...finding(input), action: action ?? null };
}

function missingParts({ missing }: Seen): Cause[] {
  const [first] = missing;
  if (first === undefined) return [];
  const isAway = missing.some(({ part }) => part === DATABASE_PART);
  return [
    cause({
      check: "database",
      what: isAway
        ? `The database is not responding: ${first.why}`
        : `The server could not read ${missing.map(({ part }) => part).join(", ")}: ${first.why}`,
      since: null,
      why: isAway
        ? "No step is started or ended while it does not answer. Nothing is lost."
        : "What is not read may be what keeps work from going on.",
      todo: "See that PostgreSQL runs, has room, and can be reached from the server (FLOW_DATABASE_URL).",
      command: "flow-doctor reachability",
    }),
  ];
}

function batchesPileUp({ batches }: Seen, { batchMs }: CauseLimits): Cause[] {
  if (batches === null || batches.oldest_ms === null || batches.oldest_ms < batchMs) return [];
  const open = batches.accepted.count + batches.processing.count;
  const more = batches.accepted.more || batches.processing.more ? "more than " : "";
  return [
    cause({
      check: "batches",
      what: `Batches pile up: ${more}${counted(open, "batch", "batches")} wait${open === 1 ? "s" : ""} to be worked out, the oldest for ${span(batches.oldest_ms)}`,
      since: null,
      why: "Workers have reported, and what follows from it does not happen: steps that ended start nothing.",
      todo: "See what the servers' logs say of 'recover batches', and whether the database is slow. Start another server where one is busy.",
      command: "flow serve --role=server",
      count: open,
    }),
  ];
}

/** Silent workers with claimed commands: these wait for the end of the leases, then for a new claim. */
function goneWorkers({ workers }: Seen): Cause[] {
  const gone = (workers?.items ?? []).filter(({ status, running }) => isGone(status) && running > 0);
  if (gone.length === 0) return [];
  const held = gone.reduce((sum, { running }) => sum + running, 0);
  const names = gone.slice(0, 3).map(({ name }) => name);
  const others = gone.length > names.length ? ` and ${gone.length - names.length} more` : "";
  return [
    cause({
      check: "stale_claims",
      what: `${counted(held, "command")} ${held === 1 ? "is" : "are"} held by ${gone.length === 1 ? "a worker that is" : "workers that are"} gone: ${names.join(", ")}${others}`,
      since: null,
      why: "No worker runs them, and their executions stand still until another worker takes them.",
      todo: "A sweep offers them to the others at once; where a lease still runs they get them at its end.",
      command: "flow-doctor repair trigger-reaper",
      action: "sweep",
      count: held,
      executionIds: gone.flatMap(({ commands }) => commands.map(({ execution_id: id }) => id)),
    }),
  ];
}

function isGone(status: string): boolean {
  return status === "stale" || status === "offline";
}

/** What waits, by why. */
function waitingWork({ queue, workers }: Seen, { waitMs }: CauseLimits): Cause[] {
  if (queue === null) return [];
  const ready = (workers?.items ?? []).filter(({ status, labels }) => status === "ready" && !isInServer(labels));
  const slots = ready.reduce((sum, { capacity }) => sum + capacity, 0);
  return queue.groups.flatMap(({ why, kinds, labels, count, oldest_ms: oldestMs, execution_ids: executionIds }) => {
    const shared = { check: `waiting_${why}`, since: null, count, executionIds };
    const waits = `${counted(count, "command")} wait${count === 1 ? "s" : ""}, the oldest for ${span(oldestMs)}`;
    const wanted = pairs(labels);
    if (why === "soon") return [];
    if (why === "busy") {
      if (oldestMs < waitMs) return [];
      return cause({
        ...shared,
        level: "notice",
        what: `All ${slots} slots of the workers are full: ${waits}`,
        why: "The work takes its turn, and longer than it should.",
        todo: "Start further workers, or raise FLOW_WORKER_CAPACITY where they idle.",
        command: "flow serve --role=worker",
      });
    }
    if (why === "unnoticed") {
      if (oldestMs < waitMs) return [];
      return cause({
        ...shared,
        what: `Workers have room, but waiting commands are not taken: ${waits}`,
        why: "Their notification was lost, or the server does not look for what it missed.",
        todo: "A sweep has them told again.",
        command: "flow-doctor repair trigger-reaper",
        action: "sweep",
      });
    }
    const kindList = kinds.join(", ");
    const [what, command] = {
      no_worker: ["No worker is ready", "flow serve --role=worker"],
      no_kind: [
        `No ready worker takes ${kindList}`,
        `FLOW_WORKER_TOOLS=${shellWord(kinds.join(","))} flow serve --role=worker`,
      ],
      no_labels: [
        `No ready worker has the labels ${wanted}`,
        `FLOW_WORKER_LABELS=${shellWord(wanted)} flow serve --role=worker`,
      ],
      no_both: [
        `No ready worker takes ${kindList} and has the labels ${wanted}`,
        `FLOW_WORKER_TOOLS=${shellWord(kinds.join(","))} FLOW_WORKER_LABELS=${shellWord(wanted)} flow serve --role=worker`,
      ],
    }[why] as [string, string];
    const advice = poolAdvice(why, { kinds, labels });
    return cause({
      ...shared,
      what: `${advice === undefined ? what : sentence(advice.what)}: ${waits}`,
      why: "They stand still until there is such a worker.",
      todo: advice?.todo ?? (why === "no_worker" ? "Start a worker." : "Start such a worker, or change the playbook."),
      command: advice?.command ?? command,
    });
  });
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Nothing that is started would run. */
function noWorkers({ workers, queue }: Seen): Cause[] {
  if (workers === null) return [];
  const others = workers.items.filter(({ labels }) => !isInServer(labels));
  if (others.some(({ status }) => status === "ready")) return [];
  if (queue?.groups.some(({ why }) => why === "no_worker")) return [];
  const draining = others.some(({ status }) => status === "draining");
  // Waiting commands have causes of their own; commands of a lost worker are just as stuck.
  const isLeft = others.some(({ status, running }) => isGone(status) && running > 0);
  return [
    cause({
      check: "no_worker",
      level: isLeft ? "anomaly" : "notice",
      what: draining ? "The last workers are draining: they take nothing new" : "No worker is there",
      since: null,
      why: isLeft
        ? "What the last ones have left stands still, and whatever is started now."
        : "Nothing waits at the moment, and what is started now will.",
      todo: "Start a worker.",
      command: "flow serve --role=worker",
    }),
  ];
}

function slowDatabase({ database }: Seen, { databaseMs }: CauseLimits): Cause[] {
  if (database === null || database.latency_ms < databaseMs) return [];
  return [
    cause({
      check: "database_slow",
      level: "notice",
      what: `The database is slow: its shortest answer took ${span(database.latency_ms)}`,
      since: null,
      why: "Each step is several statements: all of them wait for it.",
      todo: "See the findings below for what keeps it, and its own disk and processors.",
      command: "flow-doctor detect",
    }),
  ];
}

function brokerAway({ broker }: Seen): Cause[] {
  if (broker.connected) return [];
  return [
    cause({
      check: "broker",
      level: "notice",
      what: "The message broker cannot be reached",
      since: null,
      why: "Work continues by polling: steps wait up to a second longer, and cancelling takes longer to arrive.",
      todo: "Start the broker, or correct BROKER_URL. Nothing is lost meanwhile.",
      command: "flow-doctor reachability",
    }),
  ];
}

/** `12 s`, `3 min`, `2 h`: as much as a sentence needs. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
