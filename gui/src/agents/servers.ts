import { isJsonObject, own } from "../../../src/schema/words/json.ts";
import type { Agent, Resource } from "../api/types.ts";
import { fieldsOf } from "../catalog/run/inputs.ts";

/** What an agent says of itself in `metadata.terminal`, and of its inputs. */
export interface AgentTerminal {
  path: string;
  description: string;
  workspace: string;
  scopes: readonly string[];
  /** Names of MCP servers that its scopes and capabilities speak of. */
  servers: readonly string[];
  /** It hands calls on to an MCP server: it has the inputs `method` and `tool`. */
  wraps: boolean;
  /** The server can be chosen: it has the input `server`. */
  takesServer: boolean;
  /** The server that it uses by default. */
  defaultServer: string | undefined;
}

/** Reads what terminals need of an agent. Documents may contain anything: a field of another type counts as absent. */
export function agentTerminal({ path, payload }: Pick<Agent, "path" | "payload">): AgentTerminal {
  const metadata = mapAt(payload, "metadata");
  const terminal = mapAt(metadata, "terminal");
  const scopes = textsAt(terminal, "scopes");
  const capabilities = textsAt(terminal, "capabilities");
  const fields = new Map(fieldsOf(payload).map((field) => [field.name, field]));
  const server = fields.get("server")?.initial;
  return {
    path,
    description: textAt(metadata, "description"),
    workspace: textAt(terminal, "workspace"),
    scopes,
    servers: [
      ...new Set([
        ...scopes.flatMap((scope) => /^\/mcp\/(.+)$/.exec(scope)?.[1] ?? []),
        ...capabilities.flatMap((one) => /^mcp:(.+)$/.exec(one)?.[1] ?? []),
      ]),
    ],
    wraps: fields.has("method") && fields.has("tool"),
    takesServer: fields.has("server"),
    defaultServer: typeof server === "string" && server !== "" ? server : undefined,
  };
}

/** An MCP server of the catalog. */
export interface McpServer {
  path: string;
  description: string;
  endpoint: string;
  /** The actions that it has playbooks for, with their paths. */
  lifecycle: readonly (readonly [action: string, playbook: string])[];
  isVisible: boolean;
}

/** Reads a document of kind Mcp. */
export function mcpServer({ path, payload }: Pick<Resource, "path" | "payload">): McpServer {
  const spec = mapAt(payload, "spec");
  const actions = Object.entries(mapAt(spec, "lifecycle"));
  return {
    path,
    description: textAt(mapAt(payload, "metadata"), "description"),
    endpoint: textAt(spec, "endpoint"),
    lifecycle: actions.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    isVisible: own(mapAt(spec, "terminal"), "visible") !== false,
  };
}

/** Whether a name that a scope has is that of this server: `mcp/` before it may be left out. */
export function isNamed(server: string, name: string): boolean {
  return server === name || server === `mcp/${name}`;
}

/** The servers that an agent may be given: those of its scopes first, then the rest of the catalog. */
export function serverChoices(
  agent: AgentTerminal,
  servers: readonly McpServer[],
): { own: string[]; others: string[] } {
  const named = agent.servers.map((name) => servers.find(({ path }) => isNamed(path, name))?.path ?? name);
  const first = agent.defaultServer;
  const given = first === undefined ? undefined : (servers.find(({ path }) => isNamed(path, first))?.path ?? first);
  const own = [...new Set(given === undefined ? named : [given, ...named])];
  return { own, others: servers.map(({ path }) => path).filter((path) => !own.includes(path)) };
}

function mapAt(from: object, key: string): Readonly<Record<string, unknown>> {
  const value = own(from, key);
  return isJsonObject(value) ? value : {};
}

function textAt(from: object, key: string): string {
  const value = own(from, key);
  return typeof value === "string" ? value : "";
}

function textsAt(from: object, key: string): string[] {
  const value = own(from, key);
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
