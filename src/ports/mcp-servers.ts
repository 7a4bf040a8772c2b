import type { McpResource } from "../schema/words/mcp-resource.ts";

/** The MCP servers that are registered by name. */
export interface McpServers {
  /**
   * The newest version of the resource `name`, or of `mcp/<name>`; undefined where neither is an MCP resource. `file` is the
   * document that names it: a local run looks beside it.
   */
  find(name: string, file: string, signal: AbortSignal): Promise<McpResource | undefined>;
}

/** What a worker knows of MCP servers. */
export interface McpKnowledge {
  servers: McpServers;
  /**
   * Hosts that may get the machine's own token if a task itself gives the address: `mcp.example.com`, or `*.example.com` for
   * all its subdomains. Registered servers get it at any address.
   */
  tokenHosts: "all" | readonly string[];
}
