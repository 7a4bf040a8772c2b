import type {
  ClaimAnswer,
  ClaimedWork,
  ReportAnswer,
  ReportRequest,
  Unavailable,
  WorkServer,
} from "../../ports/work-server.ts";
import { refusalIn, type ServerReply, strangeAnswer } from "../../schema/routes/answer.ts";
import { COMMAND_ROUTES, EVENT_ROUTES } from "../../schema/routes/workers.ts";
import { isClaimRequired } from "../../schema/rules/claim-refusals.ts";
import type { Command } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { isUnavailable, type ServerCall, type ServerConnection } from "./connection.ts";
import type { Attaching } from "./results.ts";

/** How long a call may take that the server answers as soon as it can. */
const CALL_MS = 30_000;

/** How a worker shows itself with each claim. */
export interface ClaimingWorker {
  name: string;
  /** Kinds of task that it runs; undefined: all. */
  kinds: readonly string[] | undefined;
  labels: Readonly<Record<string, string>>;
}

/**
 * A worker's claims and reports over HTTP (decisions, "Worker protocol", "Event batches"). The one client that reads answers by
 * hand and not by their contracts: every command passes here (2 µs each instead of 10), all that the engine wrote of it stays,
 * and one malformed command does not make the others fail.
 */
export function createServerWork(
  connection: ServerConnection,
  worker: ClaimingWorker,
  attaching?: Pick<Attaching, "refused">,
): WorkServer {
  const { name, kinds, labels } = worker;
  const about = {
    ...(kinds !== undefined && { kinds }),
    ...(Object.keys(labels).length > 0 && { labels }),
  };
  const head = `{"worker":${JSON.stringify(name)},"events":[`;
  return {
    async claim({ limit, waitMs }, signal) {
      const reply = await connection.call({
        method: "POST",
        path: COMMAND_ROUTES.claim.path,
        body: JSON.stringify({ worker: name, limit, wait_ms: waitMs, ...about }),
        timeoutMs: waitMs + CALL_MS,
        signal,
      });
      return claimAnswer(reply);
    },
    async report({ key, events, attachments, secrets, claim, unanswered }, signal) {
      const proof = secrets.length === 0 ? "" : `,"claim_secrets":${JSON.stringify(secrets)}`;
      const wanted = claim === 0 ? "" : `,"claim":${JSON.stringify({ limit: claim, wait_ms: 0, ...about })}`;
      // The events are JSON already: parsing and writing them again would cost more than all else here.
      const json = `${head}${events.join(",")}]${proof}${wanted}`;
      const reply = await connection.call({
        method: "POST",
        path: EVENT_ROUTES.batch.path,
        ...bodyOf(json, attachments),
        idempotencyKey: key,
        ...(unanswered > 0 && { unanswered }),
        timeoutMs: CALL_MS,
        signal,
      });
      const answer = reportAnswer(reply);
      if (answer.status === "invalid" && attachments.length > 0) attaching?.refused();
      return answer;
    },
  };
}

/** The report, whose JSON lacks its last brace here, and its attachments behind it. */
function bodyOf(json: string, attachments: ReportRequest["attachments"]): Pick<ServerCall, "body" | "reportBytes"> {
  if (attachments.length === 0) return { body: `${json}}` };
  const about = attachments.map(({ event, ref, payload, ttl, compression }) => {
    return { event, ref, bytes: payload.byteLength, ...defined({ ttl, compression }) };
  });
  const report = Buffer.from(`${json},"attachments":${JSON.stringify(about)}}`);
  const body = Buffer.concat([report, ...attachments.map(({ payload }) => payload)]);
  return { body, reportBytes: report.length };
}

function claimAnswer(reply: ServerReply): ClaimAnswer {
  const { status, body } = reply;
  const commands = status === 200 ? commandsOf(body) : undefined;
  if (commands !== undefined) return { status: "ok", commands };
  const error = refusalOf(reply, COMMAND_ROUTES.claim.path);
  // Without a good secret of its registration a worker is as unknown.
  if (error.code === "unknown" || isClaimRequired(error)) return { status: "unknown", message: error.message };
  // Claims have nothing that could be wrong with one and right with the next: whatever was answered may change.
  return unavailable(reply, error.message);
}

function reportAnswer(reply: ServerReply): ReportAnswer {
  const { status, body } = reply;
  if (status === 202 && isJsonObject(body)) {
    const duplicate = own(body, "duplicate") === true;
    return { status: "accepted", duplicate, commands: commandsOf(body) ?? [] };
  }
  const error = refusalOf(reply, EVENT_ROUTES.batch.path);
  const { detail } = error;
  const refused = isJsonObject(detail) ? own(detail, "events") : undefined;
  if (status === 409 || (isClaimRequired(error) && refused !== undefined)) {
    return { status: "lost", events: Array.isArray(refused) ? refused.flatMap(lostEvent) : [] };
  }
  if (isUnavailable(reply) || (status !== 400 && status !== 413 && status !== 422)) {
    const answer = unavailable(reply, error.message);
    return FAULTS.has(error.code) ? { ...answer, isFault: true } : answer;
  }
  const errors = isJsonObject(detail) ? own(detail, "errors") : undefined;
  const indexes = (Array.isArray(errors) ? errors : []).map(indexOf).filter((index) => index !== undefined);
  return { status: "invalid", message: error.message, indexes };
}

function refusalOf(reply: ServerReply, path: string): FlowError {
  return refusalIn(reply) ?? strangeAnswer({ method: "POST", path }, reply.status);
}

/** Codes with which the server itself says that it failed; what stands between us and it says neither. */
const FAULTS: ReadonlySet<string> = new Set(["processing_error", "INTERNAL"]);

function unavailable({ status, retryAfterMs }: ServerReply, message: string): Unavailable {
  const text = `${message} (status ${status})`;
  return { status: "unavailable", message: text, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function lostEvent(entry: Json): { index: number; reason: string }[] {
  const index = indexOf(entry);
  const reason = isJsonObject(entry) ? own(entry, "reason") : undefined;
  return index === undefined ? [] : [{ index, reason: typeof reason === "string" ? reason : "refused" }];
}

function indexOf(entry: Json): number | undefined {
  const index = isJsonObject(entry) ? own(entry, "index") : undefined;
  return typeof index === "number" ? index : undefined;
}

/** The commands of an answer; undefined if it has no list of them. An invalid command is left out: its lease ends. */
function commandsOf(body: Json | undefined): ClaimedWork[] | undefined {
  const list = isJsonObject(body) ? own(body, "commands") : undefined;
  return Array.isArray(list) ? list.flatMap(claimedWork) : undefined;
}

function claimedWork(entry: Json): ClaimedWork[] {
  if (!isJsonObject(entry)) return [];
  const attempt = own(entry, "attempt");
  const texts = ["command_id", "execution_id", "catalog_id", "step"].every(
    (key) => typeof own(entry, key) === "string",
  );
  const isWork = texts && isJsonObject(own(entry, "context")) && typeof attempt === "number";
  if (!isWork) return [];
  const secret = own(entry, "claim_secret");
  // The rest is as the engine of the server wrote it.
  const command = entry as JsonObject as unknown as Command;
  return [typeof secret === "string" ? { command, attempt, secret } : { command, attempt }];
}
