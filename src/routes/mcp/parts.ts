import type { Logger } from "../../platform/logger.ts";
import type { FlowError } from "../../schema/errors.ts";
import type { AgentCalls } from "../../services/agent-calls.ts";
import type { AgentChanges } from "../../services/agent-changes.ts";
import type { AgentTools } from "../../services/agent-tools.ts";
import type { Executions } from "../../services/executions.ts";

/** What the MCP server is made of. */
export interface McpParts {
  tools: AgentTools;
  calls: AgentCalls;
  executions: Pick<Executions, "detail">;
  agentChanges: AgentChanges;
  /** Aborted when the server begins to stop. */
  stopping: AbortSignal;
  /** Of the program. */
  version: string;
  /** The refusal for an error that says "the database is away"; undefined for one that is a fault. */
  unavailable(error: unknown): FlowError | undefined;
  logger: Pick<Logger, "error">;
}
