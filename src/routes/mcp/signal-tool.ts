import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { EveryonesSignalBody, SignalName } from "../../schema/api/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { IdInput } from "../../schema/words/wire.ts";
import type { Executions } from "../../services/executions/executions.ts";
import type { KeyedSignals } from "../../services/signals/keyed-signals.ts";
import { check } from "../http/validate.ts";
import type { SteeringCaller } from "./caller.ts";
import { didAnswer, type ShownTool, type ToolAnswer } from "./results.ts";

/* Sending a signal: to one execution, or to everyone who waits for it. */

/** Its words for a model. */
export const SIGNAL_TOOL = {
  title: "Send a signal to steps that wait for it",
  description:
    "A step of an execution of flow that waits for a signal of this name and key goes on with its data; flow___explain says what an execution " +
    "waits for. With execution_id it is for that execution, without for all that wait for it. Give an id, so that a repeated call changes nothing.",
};

const Inputs = v.strictObject({
  name: v.pipe(SignalName, v.description("Name of the signal.")),
  execution_id: v.exactOptional(v.pipe(IdInput, v.description("The execution that it is for; absent: everyone."))),
  ...EveryonesSignalBody.entries,
});

const { $schema: _schema, ...inputSchema } = toJsonSchema(Inputs, { typeMode: "input", errorMode: "ignore" });

/** What it takes and gives. */
export const SIGNAL_SHAPE = {
  inputSchema: { ...(inputSchema as unknown as JsonObject), type: "object" },
  outputSchema: {
    type: "object",
    properties: {
      reached: { type: "integer", description: "Waits that ended with it." },
      kept: { type: "boolean", description: "No step waits for it yet: it is kept for the first one that will." },
      duplicate: { type: "boolean", description: "It was sent before; nothing has changed." },
    },
    required: ["reached", "kept", "duplicate"],
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
} as const satisfies Pick<ShownTool, "inputSchema" | "outputSchema" | "annotations">;

/** Sends one. Throws `FlowError` NOT_FOUND, FORBIDDEN, INVALID_INPUT, already_terminal, RATE_LIMITED. */
export async function signal(
  { executions, signals }: { executions: Pick<Executions, "detail" | "signal">; signals: Pick<KeyedSignals, "send"> },
  { caller, by, record, recordSignal }: SteeringCaller,
  inputs: JsonObject,
): Promise<ToolAnswer> {
  const { execution_id: id, name, data = null, key, id: signalId, retain } = check(Inputs, inputs, "The arguments");
  const words = defined({ key, id: signalId });
  if (id === undefined) {
    // Only what the caller may execute is reached: it is decided for each execution.
    caller.callable();
    const userId = defined({ userId: caller.userId === undefined ? undefined : String(caller.userId) });
    const outcome = await signals.send({ name, data, by, ...words, ...userId }, retain);
    await recordSignal(name, { ...words, reached: outcome.reached });
    return didAnswer(told(`Signal '${name}'`, outcome), { ...outcome });
  }
  await caller.permit("execute", (await executions.detail(id)).row.path);
  await caller.decided(id);
  const outcome = await executions.signal(id, { name, data, by, ...words });
  await record("execution.signal", id, { name, ...words, reached: outcome.reached });
  return didAnswer(told(`Signal '${name}' to execution ${id}`, outcome), { ...outcome });
}

function told(
  what: string,
  { reached, kept, duplicate }: { reached: number; kept: boolean; duplicate: boolean },
): string {
  if (duplicate) return `${what} was sent before; nothing has changed`;
  if (reached > 0) return `${what} was sent; waits that ended with it: ${reached}`;
  return `${what} was sent; nothing waits for it now, and it is ${kept ? "kept" : "not kept"}`;
}
