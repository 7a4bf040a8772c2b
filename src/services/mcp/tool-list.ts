import type { PathRule } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { type AgentTool, agentTool, agentToolName, hasDigest, pathOfToolName } from "./tool.ts";

/** A part of the list of tools. */
export interface AgentToolPage {
  tools: AgentTool[];
  nextCursor: string | null;
}

/** Agents as tools. */
export interface AgentTools {
  /** The tools among the next agents of these paths (undefined: all), in their order; `nextCursor` is null on the last page. */
  list(visible: readonly PathRule[] | undefined, cursor?: string): Promise<AgentToolPage>;
  /** The path of a tool; undefined for a name that no agent has. A path that is found need not be that of an agent. */
  pathOf(name: string): Promise<string | undefined>;
  /** The tool that is made of this path's newest version; undefined if it is no tool. */
  find(path: string): Promise<AgentTool | undefined>;
}

/** Agents read at a time: each comes with its document. */
const PAGE = 50;
/** Pages read for one answer while no agent in them is a tool. */
const PAGES_MAX = 20;
/** Paths read at a time in the search for the one behind a digest. */
const SEARCH_PAGE = 500;
/** Names with a digest whose paths are remembered. */
const NAMES_MAX = 10_000;

/** The tools of a catalog. */
export function createAgentTools(catalog: Pick<Catalog, "agents" | "find" | "list">): AgentTools {
  /** A name is made of its path alone, so that nothing here ever becomes wrong. */
  const paths = new Map<string, string>();
  const search = async (name: string): Promise<string | undefined> => {
    let cursor: string | null = null;
    do {
      const { items, nextCursor } = await catalog.list({
        resourceType: "agent",
        limit: SEARCH_PAGE,
        ...(cursor !== null && { cursor }),
      });
      const found = items.find(({ path }) => agentToolName(path) === name);
      if (found !== undefined) {
        if (paths.size >= NAMES_MAX) paths.clear();
        paths.set(name, found.path);
        return found.path;
      }
      cursor = nextCursor;
    } while (cursor !== null);
    return undefined;
  };
  return {
    async list(visible, cursor) {
      let next = cursor ?? null;
      for (let page = 1; ; page += 1) {
        const query = { limit: PAGE, visible, ...(next !== null && { cursor: next }) };
        const { items, nextCursor } = await catalog.agents(query);
        const tools = items.flatMap((entry) => agentTool(entry) ?? []);
        if (tools.length > 0 || nextCursor === null || page === PAGES_MAX) return { tools, nextCursor };
        next = nextCursor;
      }
    },
    async pathOf(name) {
      const path = pathOfToolName(name);
      if (path !== undefined || !hasDigest(name)) return path;
      return paths.get(name) ?? (await search(name));
    },
    async find(path) {
      try {
        const entry = await catalog.find(path);
        return entry.kind === "agent" ? agentTool(entry) : undefined;
      } catch (error) {
        if (error instanceof FlowError && error.code === "NOT_FOUND") return undefined;
        throw error;
      }
    },
  };
}
