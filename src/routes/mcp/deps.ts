import type { Logger } from "../../platform/telemetry/logger.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { Audit } from "../../services/access/audit.ts";
import type { Executions } from "../../services/executions/executions.ts";
import type { AgentCalls } from "../../services/mcp/tool-calls.ts";
import type { AgentTools } from "../../services/mcp/tool-list.ts";
import type { AgentChanges } from "../../services/mcp/tool-list-changes.ts";
import type { KeyedSignals } from "../../services/signals/keyed-signals.ts";
import type { StreamPlaces } from "../streams/places.ts";
import type { StreamRoom } from "../streams/sse.ts";

/** What the MCP server is made of. */
export interface McpParts {
  tools: AgentTools;
  calls: AgentCalls;
  executions: Pick<Executions, "detail" | "pause" | "resume" | "rerun" | "signal">;
  signals: Pick<KeyedSignals, "send">;
  audit: Pick<Audit, "record">;
  agentChanges: AgentChanges;
  /** Aborted when the server begins to stop. */
  stopping: AbortSignal;
  streams: StreamRoom & { places: StreamPlaces };
  /** Of the program. */
  version: string;
  /** The answer to an error that means "the database is unavailable"; undefined for other errors. */
  unavailable(error: unknown): FlowError | undefined;
  logger: Pick<Logger, "error">;
}
