import { compileTemplate } from "../../language/template/template.ts";
import { objectScope } from "../../language/views/scope.ts";
import type { McpKnowledge } from "../../ports/mcp-servers.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { type McpResource, mcpResourcePaths } from "../../schema/words/mcp-resource.ts";
import type { Credential } from "../../tools/contract/tool.ts";
import { resolveAuth } from "../secrets/credentials.ts";
import type { CommandContext } from "./command-context.ts";

/** What a task of kind `mcp` comes to, its server looked up and its token chosen. */
export interface McpCall {
  config: JsonObject;
  auth: Record<string, Credential>;
  /** Of the registered server, for a task that sets none. */
  timeoutMs: number | undefined;
}

/**
 * Looks up the server that a task names and chooses the credential for the call (interface specification, Managed cloud MCP
 * access): the task's `access_token`; else its `auth`, or that of the registered server. For the machine's own identity
 * (`{source: adc}`), `workload.access_token` comes first. A registered server's credential is sent only to its registered
 * address. Throws `FlowError` NOT_FOUND for an unregistered server, INVALID_INPUT if the machine's token would go to an address
 * that no operator has allowed.
 */
export async function prepareMcpCall(
  context: CommandContext,
  rendered: JsonObject,
  ownAuth: Json | undefined,
  signal: AbortSignal,
): Promise<McpCall> {
  const { deps, place, source } = context;
  const { access_token: given, ...config } = rendered;
  const server = await findServer(deps.mcp, config, source.file, signal);
  const timeoutMs = server?.timeoutSeconds === undefined ? undefined : server.timeoutSeconds * 1_000;
  const full = server === undefined ? config : { ...config, ...addressOf(server, deps.env) };
  const token = textOf(given);
  if (token !== undefined) return { config: full, auth: bearer(token), timeoutMs };
  const auth = await resolveAuth(deps.credentials, isSaid(ownAuth) ? ownAuth : server?.auth, "mcp");
  if (!Object.values(auth).some(isMachine)) return { config: full, auth, timeoutMs };
  const passed = textOf(own(place.command.context.workload, "access_token"));
  if (passed !== undefined) return { config: full, auth: bearer(passed), timeoutMs };
  if (server === undefined) checkHost(deps.mcp?.tokenHosts ?? [], config);
  return { config: full, auth, timeoutMs };
}

async function findServer(
  mcp: McpKnowledge | undefined,
  config: JsonObject,
  file: string,
  signal: AbortSignal,
): Promise<McpResource | undefined> {
  const name = textOf(own(config, "server"));
  if (mcp === undefined || name === undefined || textOf(own(config, "endpoint")) !== undefined) return undefined;
  // An address in place of a name.
  if (/^https?:/i.test(name)) return undefined;
  const server = await mcp.servers.find(name, file, signal);
  if (server !== undefined) return server;
  const looked = mcpResourcePaths(name)
    .map((path) => `'${path}'`)
    .join(" nor ");
  const next = "Register a document of kind Mcp, or give the server's address as `endpoint`";
  throw new FlowError(
    "NOT_FOUND",
    `The mcp task names the server '${name}': there is no MCP resource ${looked}. ${next}`,
  );
}

function addressOf({ path, endpoint, transport }: McpResource, env: JsonObject): JsonObject {
  const template = compileTemplate(endpoint);
  const [problem] = template.problems;
  if (problem !== undefined) {
    throw new FlowError("TEMPLATE_ERROR", `The endpoint of the MCP resource '${path}': ${problem.message}`);
  }
  const address = template.render(objectScope({ env }));
  return { endpoint: String(address ?? ""), ...(transport !== undefined && { transport }) };
}

function isSaid(auth: Json | undefined): boolean {
  return auth !== undefined && auth !== null && auth !== "";
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function bearer(token: string): Record<string, Credential> {
  return { default: { name: "access_token", type: "bearer", data: { token } } };
}

function isMachine({ data }: Credential): boolean {
  return own(data, "source") !== undefined;
}

/** A caller who chooses the address must not get the machine's token by it. */
function checkHost(allowed: McpKnowledge["tokenHosts"], config: JsonObject): void {
  const text = textOf(own(config, "endpoint")) ?? textOf(own(config, "server")) ?? "";
  // The tool reports an invalid address.
  if (allowed === "all" || !URL.canParse(text)) return;
  const { hostname } = new URL(text);
  const isAllowed = allowed.some((host) =>
    host.startsWith("*.") ? hostname.endsWith(host.slice(1)) : hostname === host,
  );
  if (isAllowed) return;
  const why = `The mcp task would send this machine's own token to ${hostname}, which is not among FLOW_MCP_TOKEN_HOSTS`;
  throw new FlowError(
    "INVALID_INPUT",
    `${why}. Register the server as an MCP resource with that auth, or add its host`,
  );
}
