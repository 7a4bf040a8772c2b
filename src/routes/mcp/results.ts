import { defined } from "../../schema/words/defined.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { maskSealed } from "../../schema/words/sealed.ts";
import type { ExecutionOutcome } from "../../services/executions/executions.ts";
import type { AgentTool } from "../../services/mcp/tool.ts";
import type { BegunCall } from "../../services/mcp/tool-calls.ts";

/** What a call of a tool gives, in the protocol's words (`CallToolResult`). */
export interface ToolAnswer {
  content: { type: "text"; text: string }[];
  structuredContent?: JsonObject;
  isError?: true;
  [key: string]: unknown;
}

/** A tool as clients see it (`Tool`). */
export interface ShownTool {
  name: string;
  title: string;
  description: string;
  inputSchema: JsonObject & { type: "object" };
  outputSchema: JsonObject & { type: "object" };
  annotations?: Record<string, boolean>;
  [key: string]: unknown;
}

/** How a tool is described. Results are never bare: which execution gave them is part of the answer. */
export function shownTool({ name, title, description, annotations, ...tool }: AgentTool): ShownTool {
  const { inputSchema, resultSchema } = tool;
  return {
    name,
    title,
    description,
    inputSchema: { ...inputSchema, type: "object" },
    outputSchema: {
      type: "object",
      properties: {
        execution_id: { type: "string" },
        status: { type: "string" },
        // A result that is large is answered by its reference.
        result: resultSchema === undefined ? {} : { anyOf: [resultSchema, REFERENCE] },
        error: { type: "object" },
      },
      required: ["execution_id", "status"],
    },
    ...defined({ annotations }),
  };
}

const REFERENCE: JsonObject = { type: "object", properties: { ref: { type: "string" } }, required: ["ref"] };

/** The answer of a call whose execution has ended. What is sealed in it is shown as a mask. */
export function endedAnswer({ executionId, path, isShown }: BegunCall, end: ExecutionOutcome): ToolAnswer {
  const { status, result, error } = end;
  const about = { execution_id: executionId, status };
  const isError = status !== "COMPLETED";
  if (!isShown) {
    const text = `Execution ${executionId} of '${path}' has ended: ${status}. Your roles do not allow to view what it gave`;
    return answer(text, about, isError);
  }
  if (isError) {
    const why = error === null ? "" : `: ${error.message} (${error.code})`;
    const shown = error === null ? about : { ...about, error: error as unknown as JsonObject };
    return answer(`Execution ${executionId} of '${path}' has ended: ${status}${why}`, shown, true);
  }
  const shown = result === null ? about : { ...about, result };
  // For clients that read texts alone, as the protocol advises.
  return answer(JSON.stringify(shown), shown, false);
}

/** The answer where the server stops before the execution has ended. */
export function leftAnswer({ executionId, path }: BegunCall): ToolAnswer {
  const text = `The server stops. Execution ${executionId} of '${path}' goes on: look at it under this id`;
  return answer(text, { execution_id: executionId, status: "RUNNING" }, true);
}

/** The answer where nothing was started, for reasons that the caller can mend. */
export function refusedAnswer(error: FlowError): ToolAnswer {
  return answer(`${error.message} (${error.code})`, undefined, true);
}

/** The answer of a tool that did or looked up something at once. */
export function didAnswer(text: string, structured: JsonObject): ToolAnswer {
  return answer(text, structured, false);
}

function answer(text: string, structured: JsonObject | undefined, isError: boolean): ToolAnswer {
  return {
    content: [{ type: "text", text: maskSealed(text) }],
    ...(structured !== undefined && { structuredContent: masked(structured) }),
    ...(isError && { isError: true }),
  };
}

function masked(value: JsonObject): JsonObject {
  const json = JSON.stringify(value);
  const text = maskSealed(json);
  return text === json ? value : (JSON.parse(text) as JsonObject);
}
