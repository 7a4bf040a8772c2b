import * as v from "valibot";
import { JsonObjectValue, JsonValue, Timestamp } from "../words/wire.ts";

/*
 * What the doctor says, and what it is asked (interface specification, Doctor). Its command line, its HTTP surface and its MCP
 * endpoint give the same outcome object.
 */

/** How an outcome ends: nothing wrong, something wrong, something was mended, or the doctor itself could not do its work. */
export const SEVERITIES = ["ok", "anomaly", "repaired", "error"] as const;
/** One of {@link SEVERITIES}. */
export type Severity = (typeof SEVERITIES)[number];

/** Exit codes of the doctor's command line. */
export const DOCTOR_EXIT: Readonly<Record<Severity, 0 | 2 | 3>> = { ok: 0, repaired: 0, anomaly: 2, error: 3 };

/** Most executions that one finding names; {@link Finding} `count` has all of them. */
export const EXECUTIONS_NAMED_MAX = 20;

/** One thing that was found. An `anomaly` makes the outcome one; a `notice` is worth knowing and does not. */
export const Finding = v.object({
  check: v.pipe(v.string(), v.description("Which check found it, for programs.")),
  level: v.picklist(["anomaly", "notice"]),
  what: v.pipe(v.string(), v.description("What is so, with names and numbers.")),
  since: v.pipe(v.nullable(Timestamp), v.description("Since when; null if unknown.")),
  why_it_matters: v.string(),
  what_to_do: v.string(),
  command: v.pipe(v.nullable(v.string()), v.description("A shell command to copy, or null.")),
  count: v.exactOptional(v.pipe(v.number(), v.description("How many there are of it."))),
  execution_ids: v.exactOptional(
    v.pipe(v.array(v.string()), v.description(`Executions that it is about, ${EXECUTIONS_NAMED_MAX} at most.`)),
  ),
});
export type Finding = v.InferOutput<typeof Finding>;

/** What the checks of one database came to. */
export const Diagnosis = v.object({
  stale_seconds: v.pipe(v.number(), v.description("Silence that counted as stale.")),
  checks: v.pipe(v.array(v.string()), v.description("Checks that were made.")),
  findings: v.array(Finding),
  skipped: v.pipe(
    v.array(v.object({ check: v.string(), why: v.string() })),
    v.description("Checks that could not be made, and why not."),
  ),
  counts: v.pipe(v.record(v.string(), v.number()), v.description("How much there is of what, whatever is wrong.")),
});
export type Diagnosis = v.InferOutput<typeof Diagnosis>;

/** Longest silence that can be asked for, seconds: a year. */
const STALE_SECONDS_MAX = 31_536_000;
/** Silence, in seconds, after which something counts as stale: FLOW_COMMAND_REAPER_WORKER_STALE_SECONDS by default. */
export const STALE_SECONDS_DEFAULT = 60;

const isStaleSeconds = (number: number) => number > 0 && number <= STALE_SECONDS_MAX;
const STALE_MESSAGE = `must be a number of seconds above 0, ${STALE_SECONDS_MAX} at most`;

/** Query of `GET /api/admin/diagnosis`. */
export const DiagnosisQuery = v.object({
  stale_seconds: v.exactOptional(
    v.pipe(
      v.string(),
      v.check((text) => /^\d{1,8}(\.\d{1,3})?$/.test(text) && isStaleSeconds(Number(text)), STALE_MESSAGE),
      v.description(`Silence after which something counts as stale; ${STALE_SECONDS_DEFAULT} by default.`),
    ),
  ),
});

/** Answer of `POST /api/admin/command_reaper/sweep`. */
export const SweepAnswer = v.object({
  status: v.literal("ok"),
  republished: v.pipe(
    v.object({ pending: v.number(), worker: v.number(), timeout: v.number() }),
    v.description("Commands whose notification was published again, by what was wrong with them."),
  ),
  total: v.number(),
  more: v.pipe(v.boolean(), v.description("There may be further ones: sweep again.")),
});
export type SweepAnswer = v.InferOutput<typeof SweepAnswer>;

/** Body of the doctor's tools. Whatever is absent is as the doctor was started. */
export const DoctorRequest = v.object({
  server_url: v.exactOptional(
    v.pipe(v.string(), v.description("The server to look at. The doctor's token goes to its own server alone.")),
  ),
  db_dsn: v.exactOptional(
    v.pipe(v.string(), v.description("postgres://… of the service's database, to look into it without the server.")),
  ),
  stale_seconds: v.exactOptional(v.pipe(v.number(), v.check(isStaleSeconds, STALE_MESSAGE))),
});
export type DoctorRequest = v.InferOutput<typeof DoctorRequest>;

/** What every action of the doctor gives. */
export const Outcome = v.object({
  action: v.string(),
  severity: v.picklist(SEVERITIES),
  generated_at: Timestamp,
  data: JsonObjectValue,
});
export type Outcome = v.InferOutput<typeof Outcome>;

/** The doctor's tools over HTTP and MCP. */
export const DOCTOR_TOOLS = ["detect", "reachability", "repair_trigger_reaper"] as const;
/** One of {@link DOCTOR_TOOLS}. */
export type DoctorToolName = (typeof DOCTOR_TOOLS)[number];

/** Answer of `GET /tools`. */
export const ToolsAnswer = v.object({
  tools: v.array(
    v.object({
      name: v.picklist(DOCTOR_TOOLS),
      description: v.string(),
      invoke: v.string(),
      changes: v.boolean(),
      input_schema: JsonValue,
    }),
  ),
});
export type ToolsAnswer = v.InferOutput<typeof ToolsAnswer>;
