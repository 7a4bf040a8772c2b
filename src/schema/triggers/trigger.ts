import type { JsonObject } from "../words/json.ts";
import type { NatsTrigger } from "./nats-trigger.ts";
import type { WebhookTrigger } from "./webhook.ts";

/*
 * A trigger after loading (control, section 3): every spelling normalised, plain JSON, kept as it is in the database. Templates of `input`
 * are text here; they are rendered when it fires.
 */

/** What makes a trigger fire. A document has the section of the same name. */
export const TRIGGER_KINDS = ["schedule", "webhook", "execution", "nats", "signal"] as const;
/** What makes a trigger fire: one of {@link TRIGGER_KINDS}. */
export type TriggerKind = (typeof TRIGGER_KINDS)[number];

/** What happens when a trigger fires while an execution of it is open. */
export const OVERLAPS = ["allow", "skip", "queue", "cancel_running"] as const;
/** What happens when a trigger fires while an execution of it is open: one of {@link OVERLAPS}. */
export type Overlap = (typeof OVERLAPS)[number];

/** What happens with times of a schedule at which no server was there. */
export const CATCHUP_MODES = ["none", "last", "all"] as const;
/** What happens with missed times: one of {@link CATCHUP_MODES}. */
export type CatchupMode = (typeof CATCHUP_MODES)[number];

/** What has become of a fire (control, rule 34). `queued`: it is to start, at once or when an open execution has ended. */
export const FIRE_STATUSES = ["started", "queued", "skipped", "missed", "failed"] as const;
/** What has become of a fire: one of {@link FIRE_STATUSES}. */
export type FireStatus = (typeof FIRE_STATUSES)[number];

/** When a schedule fires: at times of the clock or in an interval, one of both. */
export interface Schedule {
  /** Patterns of five or six fields; it fires at the times of all of them. */
  cron: string[];
  /** Milliseconds from one time to the next, counted from when the trigger became active. */
  everyMs?: number;
  timezone: string;
  /** The longest that a fire is put off, in milliseconds; by how much is derived from the trigger and the time. */
  jitterMs: number;
}

/** Missed times that are made up for: at most this long afterwards. */
export interface Catchup {
  mode: CatchupMode;
  /** Absent: however long ago. */
  windowMs?: number;
}

/** Ends of other executions. */
export interface WatchedExecutions {
  /** A pattern of paths: `*` within a segment, `**` across. */
  path: string;
  status: string[];
}

/** One trigger of a playbook. It has the section of its kind. */
export interface Trigger {
  name: string;
  kind: TriggerKind;
  schedule?: Schedule;
  execution?: WatchedExecutions;
  signal?: { name: string };
  webhook?: WebhookTrigger;
  nats?: NatsTrigger;
  catchup: Catchup;
  overlap: Overlap;
  /** Inputs of the execution, with templates over `trigger` and what the kind brings. */
  input: JsonObject;
  /** Template of a map that is the input too; `input` wins. What is no map is the input `payload`. */
  inputFrom?: string;
}

/** A trigger, and the playbook that it starts. */
export interface TriggerOf {
  /** Catalog path of the playbook. */
  path: string;
  trigger: Trigger;
}

/**
 * What is looked up when something comes from outside, unique among the triggers of a kind on a server (control, rule 40): the path of a
 * webhook. Null for other kinds.
 */
export function addressOf({ webhook }: Trigger): string | null {
  return webhook?.path ?? null;
}
