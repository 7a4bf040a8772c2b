import { FlowError } from "../../schema/words/errors.ts";
import { createSecret } from "../crypto/secret.ts";
import { countSetting, milliseconds, oneOf, secondsSetting, setting } from "../setting.ts";
import { parsePort } from "./address.ts";

const MEBIBYTE = 1_048_576;

/**
 * Settings of a server's work: batches, claims, the reaper, retention (interface specification, Limits). Times are
 * milliseconds in the program, whatever the setting's unit.
 */
export const SERVICE_SETTINGS = {
  batchEnqueueTimeoutMs: secondsSetting(
    "FLOW_BATCH_ACCEPT_ENQUEUE_TIMEOUT_SECONDS",
    "Longest time until an event batch is durable, or another request has its turn; then it is refused, a batch with ack_timeout",
    10,
  ),
  batchQueueMax: countSetting(
    "FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE",
    "Requests that wait to be written, a quarter of them of one execution; beyond it they are refused with queue_unavailable",
    1_024,
  ),
  batchQueueBytes: countSetting(
    "FLOW_BATCH_ACCEPT_QUEUE_BYTES",
    "Bytes of requests that wait to be written; beyond it they are refused with queue_unavailable",
    64 * MEBIBYTE,
  ),
  batchProcessors: countSetting("FLOW_BATCH_ACCEPT_WORKERS", "Accepted event batches processed at a time", 1, 64),
  batchProcessingTimeoutMs: secondsSetting(
    "FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS",
    "Longest time for working out what follows from a batch",
    15,
  ),
  batchStatusPollMs: secondsSetting(
    "FLOW_BATCH_STATUS_STREAM_POLL_SECONDS",
    "How often the stream of a batch's status looks for a change",
    0.5,
  ),
  batchEventsMax: countSetting("FLOW_BATCH_EVENTS_MAX", "Most events of one batch", 256, 100_000),
  batchBytesMax: countSetting("FLOW_BATCH_BYTES_MAX", "Longest body of an event batch, bytes", 2 * MEBIBYTE),
  eventStreamsPerUser: countSetting(
    "FLOW_EVENT_STREAMS_PER_USER",
    "Event streams that one user, or one token of workers, has open at this server; a further one is refused (429)",
    100,
    100_000,
  ),
  eventStreams: countSetting(
    "FLOW_EVENT_STREAMS",
    "Event streams that are open at this server in all; a further one is refused (429)",
    1_000,
    100_000,
  ),
  reaperEnabled: setting({
    name: "FLOW_COMMAND_REAPER_ENABLED",
    meaning: "Whether this server looks for stranded commands: true or false",
    default: "true",
    parse: (text) => {
      const value = text?.toLowerCase() ?? "true";
      if (value === "true" || value === "false") return value === "true";
      throw new FlowError("INVALID_SETTING", `FLOW_COMMAND_REAPER_ENABLED must be true or false, got '${text}'`);
    },
  }),
  reaperIntervalMs: secondsSetting("FLOW_COMMAND_REAPER_INTERVAL_SECONDS", "Time between sweeps of the reaper", 60),
  reaperWorkerStaleMs: secondsSetting(
    "FLOW_COMMAND_REAPER_WORKER_STALE_SECONDS",
    "Silence after which a worker counts as lost",
    60,
  ),
  reaperHardTimeoutMs: secondsSetting(
    "FLOW_COMMAND_REAPER_HEALTHY_HARD_TIMEOUT_SECONDS",
    "Age of a claim after which it is offered again although its worker seems healthy",
    1_800,
  ),
  reaperPendingRetryMs: secondsSetting(
    "FLOW_COMMAND_REAPER_PENDING_RETRY_SECONDS",
    "Age after which an unclaimed command is offered again",
    60,
  ),
  reaperMaxPerRun: countSetting("FLOW_COMMAND_REAPER_MAX_PER_RUN", "Most commands that one sweep offers again", 100),
  claimHardTimeoutMs: setting({
    name: "FLOW_COMMAND_CLAIM_HEALTHY_WORKER_HARD_TIMEOUT_SECONDS",
    meaning: "Age of a claim after which another worker may take it although its worker seems healthy",
    default: "FLOW_COMMAND_REAPER_HEALTHY_HARD_TIMEOUT_SECONDS",
    parse: (text) => milliseconds("FLOW_COMMAND_CLAIM_HEALTHY_WORKER_HARD_TIMEOUT_SECONDS", text),
  }),
  claimLeaseMs: secondsSetting("FLOW_COMMAND_CLAIM_LEASE_SECONDS", "How long a claim holds without a heartbeat", 120),
  commandLostLimit: countSetting(
    "FLOW_COMMAND_LOST_LIMIT",
    "Workers that a command may lose, by a crash or a lease that ran out, before it fails with WORKER_LOST",
    3,
    1_000,
  ),
  pureSteps: setting({
    name: "FLOW_PURE_STEPS",
    meaning:
      "Who runs steps that only evaluate templates (noop): server, within the commit that issues them, or workers",
    default: "server",
    parse: (text) => oneOf("FLOW_PURE_STEPS", text ?? "server", ["server", "workers"]),
  }),
  lameDuckMs: setting({
    name: "FLOW_LAME_DUCK_SECONDS",
    meaning: "How long a stopping server or gateway still answers calls, so that callers go elsewhere",
    default: "2; on loopback 0",
    parse: (text) => (Number(text) === 0 ? 0 : milliseconds("FLOW_LAME_DUCK_SECONDS", text)),
  }),
  retentionDays: countSetting("FLOW_RETENTION_DAYS", "Days that finished executions are kept", 90, 36_500),
} as const;

/** Settings of a server's administrators. */
export const ADMIN_SETTINGS = {
  adminEmails: setting({
    name: "FLOW_ADMIN_EMAILS",
    meaning: "Addresses of the first administrators, comma-separated: they are given the role admin at start, once",
    default: "none",
    parse: (text) => Object.freeze((text ?? "").split(",").flatMap(parseEmail)),
  }),
} as const;

/** In lower case, as identity providers' addresses are compared. */
function parseEmail(text: string): string[] {
  const email = text.trim().toLowerCase();
  if (email === "") return [];
  if (email.length <= 320 && /^[^\s@]+@[^\s@]+$/.test(email)) return [email];
  throw new FlowError("INVALID_SETTING", `FLOW_ADMIN_EMAILS: '${text.trim()}' is no e-mail address`);
}

/** Settings of the doctor. It listens on FLOW_HOST and calls the server with FLOW_SERVER_TOKEN, as other roles do. */
export const DOCTOR_SETTINGS = {
  doctorPort: setting({
    name: "FLOW_DOCTOR_PORT",
    meaning: "Port of the doctor's tools over HTTP and MCP; 0 takes a free one",
    default: "8765",
    parse: (text) => parsePort("FLOW_DOCTOR_PORT", text ?? "8765"),
  }),
  doctorToken: setting({
    name: "FLOW_DOCTOR_TOKEN",
    meaning: "Token that callers of the doctor must have, so that they need not have the operator's",
    default: "FLOW_SERVER_TOKEN",
    secret: true,
    parse: (text) => {
      if (text === undefined) return undefined;
      if (/^[\x21-\x7e]+$/.test(text)) return createSecret(text);
      throw new FlowError("INVALID_SETTING", "FLOW_DOCTOR_TOKEN must be of visible ASCII characters, without spaces");
    },
  }),
} as const;
