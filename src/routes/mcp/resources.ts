import { FlowError } from "../../schema/words/errors.ts";
import { maskSealed } from "../../schema/words/sealed.ts";
import type { AgentCaller } from "../../services/mcp/tool-calls.ts";
import { pathId } from "../http/validate.ts";
import type { McpParts } from "./deps.ts";

/** Executions as resources: not listed, since they are many, but each can be read by its id. */
export const EXECUTION_TEMPLATE = {
  uriTemplate: "flow://executions/{execution_id}",
  name: "execution",
  title: "Execution",
  description: "An execution: its status, its steps and, when it has ended, its result or why it failed.",
  mimeType: "application/json",
};

/** What a resource has. Throws `FlowError` NOT_FOUND, or FORBIDDEN for an execution whose path the caller may not view. */
export async function readExecution(
  { executions }: Pick<McpParts, "executions">,
  caller: AgentCaller,
  uri: string,
): Promise<{ uri: string; mimeType: string; text: string }> {
  const id = /^flow:\/\/executions\/([^/]+)$/.exec(uri)?.[1];
  if (id === undefined) throw new FlowError("NOT_FOUND", `There is no resource '${uri.slice(0, 200)}'`);
  const { row, steps } = await executions.detail(pathId(id, "execution"));
  await caller.permit("view", row.path);
  await caller.decided(row.executionId);
  const { executionId, path, version, status, progress, startedAt, endedAt, result, error } = row;
  const text = JSON.stringify({
    execution_id: executionId,
    path,
    version,
    status,
    progress,
    started_at: startedAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    result: result ?? null,
    error,
    steps,
  });
  return { uri, mimeType: EXECUTION_TEMPLATE.mimeType, text: maskSealed(text) };
}
