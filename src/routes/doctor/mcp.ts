import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as v from "valibot";
import { DoctorRequest } from "../../schema/api/doctor.ts";
import type { Json } from "../../schema/words/json.ts";
import type { Doctor } from "../../services/diagnosis/doctor.ts";
import { TOOLS } from "./tools.ts";

/** What the endpoint needs. */
export interface DoctorMcpDeps {
  doctor: Doctor;
  /** Version of the program. */
  version: string;
  /** Aborted when the process stops. */
  stopping: AbortSignal;
}

/**
 * Answers one message of an MCP client (streamable HTTP). Each request gets a new server without a session: the tools keep no
 * state between two calls, so that a client does not notice a restart.
 */
export async function answerMcp(deps: DoctorMcpDeps, request: Request, body: Json): Promise<Response> {
  const server = doctorServer(deps);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  try {
    await server.connect(transport);
    return await transport.handleRequest(request, { parsedBody: body });
  } finally {
    await server.close();
  }
}

function doctorServer({ doctor, version, stopping }: DoctorMcpDeps): Server {
  const server = new Server(
    { name: "flow-doctor", version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: TOOLS.map(({ name, description, inputSchema, changes }) => ({
      name,
      description,
      inputSchema,
      annotations: { readOnlyHint: !changes, destructiveHint: false, idempotentHint: true },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }): Promise<CallToolResult> => {
    const tool = TOOLS.find(({ name }) => name === params.name);
    if (tool === undefined) return refused(`There is no tool '${params.name}'; there are ${NAMES}`);
    const request = v.safeParse(DoctorRequest, params.arguments ?? {});
    if (!request.success) return refused(`The arguments are not valid: ${v.summarize(request.issues)}`);
    const outcome = await doctor[tool.name](request.output, AbortSignal.any([signal, stopping]));
    return {
      content: [{ type: "text", text: JSON.stringify(outcome, null, 2) }],
      structuredContent: { ...outcome },
      isError: outcome.severity === "error",
    };
  });
  return server;
}

const NAMES = TOOLS.map(({ name }) => name).join(", ");
const INSTRUCTIONS =
  "Call detect first. Each finding has what_to_do and a command for a person to run; of these, only repair_trigger_reaper can be called here.";

function refused(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
