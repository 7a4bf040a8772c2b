import type { Body } from "./api.ts";
import { type Claimed, endOf } from "./api-work.ts";

/** A report whose JSON is followed by large results, as bytes, and the header that says where they begin. */
export interface AttachedReport {
  body: Buffer<ArrayBuffer>;
  headers: { "x-flow-report-bytes": string };
}

/** Under which reference the result of a command's task is kept. */
export function refOf({ execution_id, command_id, step }: Claimed, executionId = execution_id): string {
  return `noetl://execution/${executionId}/step/${step}/task/start/run/${command_id}-0-0`;
}

/** The events of a command's end, whose result is what follows the report: what a worker can say of it before it is stored. */
export function attachedEnd(command: Claimed, payload: Buffer, ref = refOf(command)): Body[] {
  const preview = { truncated: true, bytes: payload.length, sample: "" };
  const reference = {
    ...{ kind: "result_ref", ref, store: "kv", scope: "permanent", extracted: {}, preview },
    meta: { content_type: "application/json", bytes: payload.length, sha256: "", fields: ["deep"] },
  };
  return endOf(command).map((event) =>
    event["event_type"] === "task.done"
      ? { ...event, result: { status: "ok", reference, context: { task: event["task"] } } }
      : event,
  );
}

/** A report as it travels. `payloads`: what follows it. */
export function attachedReport(report: Body, payloads: readonly Buffer[]): AttachedReport {
  const json = Buffer.from(JSON.stringify(report));
  return { body: Buffer.concat([json, ...payloads]), headers: { "x-flow-report-bytes": String(json.length) } };
}
