import { isJsonObject, own } from "../../../src/schema/words/json.ts";

/** A tool that an MCP server offers, as its list says. */
export interface McpTool {
  name: string;
  title: string;
  description: string;
  /** JSON Schema of its arguments. */
  inputSchema: Readonly<Record<string, unknown>>;
  /** What its author says that it does: changes nothing, destroys. */
  hints: readonly string[];
}

/** A piece of a tool's answer. */
export interface McpContent {
  type: string;
  /** What can be read of it. */
  text: string;
}

/** Values within each other that are looked at: an agent may put the answer anywhere in its result. */
const DEPTH_MAX = 5;

/** The tools within what an agent gave for `tools/list`, wherever in it they stand. */
export function toolsOf(result: unknown): McpTool[] {
  const list = within(result, "tools", DEPTH_MAX);
  return Array.isArray(list) ? list.filter(isJsonObject).map(toolOf) : [];
}

/** What a tool answered, piece by piece; undefined where the result holds no answer of a tool. */
export function contentOf(result: unknown): { isError: boolean; pieces: McpContent[] } | undefined {
  const holder = holderOf(result, "content", DEPTH_MAX);
  const content = holder === undefined ? undefined : own(holder, "content");
  if (holder === undefined || !Array.isArray(content)) return undefined;
  return { isError: own(holder, "isError") === true, pieces: content.filter(isJsonObject).map(pieceOf) };
}

const HINTS: readonly (readonly [key: string, told: string])[] = [
  ["readOnlyHint", "changes nothing"],
  ["destructiveHint", "may destroy"],
  ["idempotentHint", "may be repeated"],
  ["openWorldHint", "reaches others"],
];

function toolOf(tool: Record<string, unknown>): McpTool {
  const schema = own(tool, "inputSchema") ?? own(tool, "input_schema");
  const annotations = own(tool, "annotations");
  const text = (key: string) => {
    const value = own(tool, key);
    return typeof value === "string" ? value : "";
  };
  return {
    name: text("name"),
    title: text("title"),
    description: text("description"),
    inputSchema: isJsonObject(schema) ? schema : {},
    hints: HINTS.flatMap(([key, hint]) => (isJsonObject(annotations) && own(annotations, key) === true ? [hint] : [])),
  };
}

function pieceOf(piece: Record<string, unknown>): McpContent {
  const type = String(own(piece, "type") ?? "");
  const resource = own(piece, "resource");
  const [text, data] = [own(piece, "text"), own(piece, "data")];
  if (typeof text === "string") return { type, text };
  if (typeof data === "string") {
    const mime = String(own(piece, "mimeType") ?? "data");
    return {
      type,
      text: `${mime}, ${Math.round((data.length * 3) / 4).toLocaleString("en")} bytes; it is in the whole answer.`,
    };
  }
  if (isJsonObject(resource)) {
    const inner = own(resource, "text");
    return { type, text: typeof inner === "string" ? inner : String(own(resource, "uri") ?? "") };
  }
  return { type, text: String(own(piece, "uri") ?? own(piece, "name") ?? "") };
}

function within(value: unknown, key: string, depth: number): unknown {
  const holder = holderOf(value, key, depth);
  return holder === undefined ? undefined : own(holder, key);
}

/** The map that has a list under this key, the outermost first. */
function holderOf(value: unknown, key: string, depth: number): Record<string, unknown> | undefined {
  if (!isJsonObject(value) || depth === 0) return undefined;
  if (Array.isArray(own(value, key))) return value;
  for (const inner of Object.values(value)) {
    const found = holderOf(inner, key, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
