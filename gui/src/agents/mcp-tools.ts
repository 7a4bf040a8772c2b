import { isJsonObject, type JsonObject, own } from "../../../src/schema/words/json.ts";

/** A tool that an MCP server offers, as its list says. */
export interface McpTool {
  name: string;
  title: string;
  description: string;
  /** JSON Schema of its arguments. */
  inputSchema: Readonly<Record<string, unknown>>;
  /** What its author says that it does: changes nothing, destroys. */
  hints: readonly string[];
  /** As the server gives it; absent for one that is only known by its name. */
  raw?: JsonObject;
}

/** A piece of a tool's answer. */
export interface McpContent {
  type: string;
  /** What can be read of it. */
  text: string;
  /** It is a picture, in base64. */
  picture?: { data: string; type: string };
}

/** Values within each other that are looked at: an agent may put the answer anywhere in its result. */
const DEPTH_MAX = 5;

/** The tools within what an agent gave for `tools/list`, wherever in it they stand. */
export function toolsOf(result: unknown): McpTool[] {
  return listWithin(result, "tools").map(toolOf);
}

/** The items of a list within what an agent gave, wherever in it the list stands. */
export function listWithin(result: unknown, key: string): JsonObject[] {
  const list = within(result, key, DEPTH_MAX);
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

/** What a tool, a resource or a prompt answered, piece by piece; undefined where the result holds no such answer. */
export function contentOf(result: unknown): { isError: boolean; pieces: McpContent[] } | undefined {
  for (const key of ["contents", "messages"]) {
    const parts = listWithin(result, key).map((part) => {
      const inner = own(part, "content");
      return pieceOf(isJsonObject(inner) ? inner : part);
    });
    if (parts.length > 0) return { isError: false, pieces: parts };
  }
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
    raw: tool as JsonObject,
    hints: HINTS.flatMap(([key, hint]) => (isJsonObject(annotations) && own(annotations, key) === true ? [hint] : [])),
  };
}

function pieceOf(piece: Record<string, unknown>): McpContent {
  const type = String(own(piece, "type") ?? "");
  const resource = own(piece, "resource");
  const [text, data] = [own(piece, "text"), own(piece, "data") ?? own(piece, "blob")];
  if (typeof text === "string") return { type, text };
  if (typeof data === "string") {
    const mime = String(own(piece, "mimeType") ?? "data");
    const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(mime);
    return {
      type,
      ...(isPicture && { picture: { data, type: mime } }),
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
