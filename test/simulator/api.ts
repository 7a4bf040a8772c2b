import { createHash } from "node:crypto";
import type { ServerCall } from "../../src/adapters/server/connection.ts";
import type { RunningEntry } from "../../src/adapters/server/running-table.ts";
import type { GivenDecision } from "../../src/engine/decide/approvals.ts";
import { resultOf } from "../../src/engine/state/results.ts";
import { isTerminal } from "../../src/engine/state/state.ts";
import { createClaimSecrets } from "../../src/platform/crypto/claim-secrets.ts";
import { commandAnswer } from "../../src/routes/workers/claimed-command.ts";
import { readBatch } from "../../src/routes/workers/event-batch.ts";
import type { ServerReply } from "../../src/schema/routes/answer.ts";
import { fromRecord } from "../../src/schema/rules/event-record.ts";
import type { Signal } from "../../src/schema/words/command.ts";
import { defined } from "../../src/schema/words/defined.ts";
import { ERROR_STATUS, FlowError } from "../../src/schema/words/errors.ts";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";
import type { ExecutionReader } from "../../src/services/executions/execution-reader.ts";
import { type OverrideRequest, overrideSteps } from "../../src/services/executions/override-step.ts";
import type { Orchestrator, ReportOutcome } from "../../src/services/orchestration/orchestrator.ts";
import { keyRing } from "../support/engine/key-ring.ts";
import { idOfPlaybook } from "./playbooks.ts";
import type { Process } from "./process.ts";
import { type RerunParts, rerun, takenChild } from "./rerun-route.ts";
import { STORE_ERRORS } from "./store.ts";

const SECRETS = createClaimSecrets(keyRing());

/** What answering calls needs. */
export interface ApiParts extends RerunParts {
  orchestrator: Orchestrator;
  reader: ExecutionReader;
  process: Process;
  /** A batch was acknowledged. */
  acknowledged(outcome: ReportOutcome): void;
  /** Something was thrown that is no answer for a caller. */
  broken(error: unknown): void;
}

/** The routes that workers and operators use, without HTTP: text in, text out. */
export async function answer(parts: ApiParts, call: ServerCall, gone: AbortSignal): Promise<ServerReply> {
  try {
    const body = await route(parts, call, gone);
    return reply(call.path === "/api/events/batch" ? 202 : 200, body);
  } catch (error) {
    const away = STORE_ERRORS.unavailable(error) ?? error;
    if (!(away instanceof FlowError)) {
      parts.broken(error);
      return reply(500, { error: String(error), code: "INTERNAL" });
    }
    const { code, message, detail } = away;
    return reply(ERROR_STATUS[code], { error: message, code, ...(detail !== undefined && { detail }) });
  }
}

function reply(status: number, body: unknown): ServerReply {
  return { status, body: JSON.parse(JSON.stringify(body)) as Json };
}

async function route(parts: ApiParts, call: ServerCall, gone: AbortSignal): Promise<unknown> {
  const url = new URL(call.path, "http://server");
  const [, , place = "", ...rest] = url.pathname.split("/");
  switch (place) {
    case "commands":
      return await claim(parts, bodyOf(call), gone);
    case "events":
      return await report(parts, call);
    case "results":
      return call.method === "PUT" ? await save(parts, url, textOf(call)) : await load(parts, url);
    case "execute":
      return await execute(parts, call);
    case "executions":
      if (rest[1] === "cancel") return await cancel(parts, rest[0] ?? "");
      if (rest[1] === "pause" || rest[1] === "resume") return await steer(parts, rest[1], rest[0] ?? "");
      if (rest[1] === "rerun") return await rerun(parts, rest[0] ?? "", call);
      if (rest[1] === "signals") return await signal(parts, rest[0] ?? "", rest[2] ?? "", bodyOf(call));
      if (rest[3] === "override") return await override(parts, rest[0] ?? "", rest[2] ?? "", bodyOf(call));
      return await awaitEnd(parts, rest[0] ?? "", url, gone);
    case "approvals":
      return await decide(parts, rest[0] ?? "", bodyOf(call));
    case "worker":
      return await pool(parts, rest[1] ?? "", bodyOf(call));
    default:
      throw new Error(`There is no route for ${call.path}`);
  }
}

function bodyOf(call: ServerCall): JsonObject {
  return JSON.parse(textOf(call)) as JsonObject;
}

function textOf({ body = "" }: ServerCall): string {
  return typeof body === "string" ? body : Buffer.from(body).toString();
}

async function claim({ orchestrator }: ApiParts, body: JsonObject, gone: AbortSignal): Promise<unknown> {
  const input = { worker: String(body["worker"]), limit: Number(body["limit"]), kinds: undefined, labels: {} };
  const commands = await orchestrator.claim({ ...input, waitMs: Number(body["wait_ms"]) }, gone);
  return { commands: commands.map((one) => commandAnswer(one, SECRETS)) };
}

async function report({ orchestrator, process, acknowledged }: ApiParts, call: ServerCall): Promise<unknown> {
  const { worker = "", events, claim: wanted } = readBatch(bodyOf(call), 256, process.clock.now());
  const outcome = await orchestrator.report({
    caller: worker,
    idempotencyKey: call.idempotencyKey ?? null,
    bodySha256: sha256(textOf(call)),
    events,
    ...(wanted !== undefined && { claim: wanted }),
    isRedelivered: (call.unanswered ?? 0) > 0,
  });
  acknowledged(outcome);
  const { duplicate, commands } = outcome;
  return {
    status: "accepted",
    duplicate,
    ...(wanted !== undefined && { commands: commands.map((one) => commandAnswer(one, SECRETS)) }),
  };
}

async function save({ tables, query }: ApiParts, url: URL, json: string): Promise<unknown> {
  const asked = url.searchParams;
  const [ref = "", id = "", attempt] = [asked.get("ref") ?? "", asked.get("command_id") ?? "", asked.get("attempt")];
  const saved = await query(async () => tables.saveClaimed(ref, json, id, Number(attempt)));
  if (saved === undefined) throw new FlowError("CONFLICT", `${ref} is another claim's to store`);
  const place = { store: "kv", content_type: "application/json", compression: null, meta: {} };
  return { status: "ok", ref, sha256: saved, bytes: json.length, expires_at: "2030-01-01T00:00:00.000Z", ...place };
}

async function load({ tables, query }: ApiParts, url: URL): Promise<unknown> {
  const ref = url.searchParams.get("ref") ?? "";
  const payload = await query(async () => tables.payloads.get(ref));
  if (payload === undefined) throw new FlowError("REFERENCE_NOT_AVAILABLE", `There is no ${ref}`);
  return payload;
}

async function execute({ orchestrator, tables, query }: ApiParts, call: ServerCall): Promise<unknown> {
  const body = bodyOf(call);
  const path = String(body["path"]);
  const parent = body["parent_execution_id"];
  const parentRow =
    parent === undefined ? undefined : await query(async () => tables.store.executions.get(String(parent)));
  if (parentRow !== undefined && parentRow.endedAt !== null) throw new FlowError("CONFLICT", "The parent has ended");
  const catalogId = idOfPlaybook(path);
  const iter = body["parent_iter"] as JsonObject | undefined;
  const takenId = takenChild(parentRow, String(body["parent_step"]), iter);
  if (takenId !== undefined)
    return { execution_id: takenId, status: "COMPLETED", path, version: 1, catalog_id: catalogId };
  const started = await orchestrator.start({
    entry: { catalogId, path, version: 1 },
    input: (body["workload"] ?? {}) as JsonObject,
    idempotency: { caller: "operator", key: call.idempotencyKey ?? "", bodySha256: sha256(textOf(call)) },
    ...(parentRow !== undefined && {
      parent: { execution_id: String(parent), step: String(body["parent_step"]), ...defined({ iter }) },
      rootExecutionId: parentRow.rootExecutionId,
    }),
  });
  return { execution_id: started.executionId, status: started.status, path, version: 1, catalog_id: catalogId };
}

async function cancel({ orchestrator, process }: ApiParts, executionId: string): Promise<unknown> {
  const reason = "somebody asked for it";
  await orchestrator.inject(executionId, { type: "execution.cancelled", at: process.clock.now(), reason });
  return { execution_id: executionId, status: "CANCELLED", children_cancelled: 0 };
}

async function steer({ orchestrator, process }: ApiParts, what: string, executionId: string): Promise<unknown> {
  const type = what === "pause" ? "execution.paused" : "execution.resumed";
  await orchestrator.inject(executionId, { type, at: process.clock.now() });
  return { execution_id: executionId, status: what === "pause" ? "PAUSED" : "RUNNING", children: 0 };
}

async function override(
  { orchestrator, process }: ApiParts,
  executionId: string,
  step: string,
  body: JsonObject,
): Promise<unknown> {
  const request = body as unknown as OverrideRequest;
  const end = overrideSteps({ orchestrator, now: () => process.clock.now() });
  return { execution_id: executionId, step, status: await end(executionId, decodeURIComponent(step), request) };
}

async function signal(
  { orchestrator }: ApiParts,
  executionId: string,
  name: string,
  body: JsonObject,
): Promise<unknown> {
  return await orchestrator.signal(executionId, { name, ...(body as Omit<Signal, "name">) });
}

/** As `services/approvals/approvals` takes a decision: the last word is the log's. */
async function decide(
  { orchestrator, tables, query }: ApiParts,
  approvalId: string,
  body: JsonObject,
): Promise<unknown> {
  const executionId = String(body["execution_id"]);
  const commandId = await query(async () => {
    const events = (tables.store.events.get(executionId) ?? []).filter(
      ({ event_type: type }) => type === "approval.opened",
    );
    for (const event of events.map(fromRecord))
      if (event.type === "approval.opened" && event.approval_id === approvalId) return event.command_id;
    throw new FlowError("NOT_FOUND", `There is no approval ${approvalId}`);
  });
  const { decision, by, link } = body as unknown as GivenDecision;
  const status = await orchestrator.decide(
    { approvalId, executionId, commandId },
    { decision, by, ...defined({ link }) },
  );
  return { approval_id: approvalId, execution_id: executionId, status };
}

/** As `services/executions/await-result` waits, on the virtual clock. */
async function awaitEnd(
  { reader, tables, process, query }: ApiParts,
  executionId: string,
  url: URL,
  gone: AbortSignal,
): Promise<unknown> {
  const until = process.clock.now() + Number(url.searchParams.get("wait_ms"));
  for (;;) {
    const row = await query(async () => tables.store.executions.get(executionId)?.lastEventId);
    const view = row === undefined ? undefined : await reader.read(executionId, row);
    if (view === undefined) throw new FlowError("NOT_FOUND", `There is no execution ${executionId}`);
    const { path, status, error } = view.state;
    const isOver = isTerminal(status);
    if (isOver || process.clock.now() >= until || gone.aborted) {
      return { execution_id: executionId, path, status, error, result: isOver ? resultOf(view.state) : null };
    }
    await process.clock.sleep(1_000);
  }
}

async function pool({ tables, orchestrator, query }: ApiParts, what: string, body: JsonObject): Promise<unknown> {
  const name = String(body["name"]);
  if (what === "register") {
    await query(async () => tables.workers.register(name));
    return { status: "ok" };
  }
  const running = body["running"] as unknown as RunningEntry[];
  const found = await query(async () => tables.workers.heartbeat(name, running));
  if (found === undefined) throw new FlowError("unknown", `No worker '${name}' is registered here`);
  if (found.unlisted.length > 0) void orchestrator.offer(found.unlisted, { worker: name, isGone: true });
  return { cancel: found.cancelled, lost: found.lost };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
