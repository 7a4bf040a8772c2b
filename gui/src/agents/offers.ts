import { isJsonObject, type JsonObject, own } from "../../../src/schema/words/json.ts";
import { listWithin, type McpTool, toolsOf } from "./mcp-tools.ts";

/** What an MCP server offers. */
export type OfferKind = "tools" | "resources" | "templates" | "prompts";

/** How it is called for people, and by which methods. */
export const OFFERS: Readonly<
  Record<OfferKind, { title: string; one: string; verb: string; list: string; read(result: unknown): McpTool[] }>
> = {
  tools: { title: "Tools", one: "tool", verb: "Call", list: "tools/list", read: toolsOf },
  resources: { title: "Resources", one: "resource", verb: "Read", list: "resources/list", read: resourcesOf },
  templates: {
    ...{ title: "Templates", one: "resource template", verb: "Read" },
    ...{ list: "resources/templates/list", read: templatesOf },
  },
  prompts: { title: "Prompts", one: "prompt", verb: "Get", list: "prompts/list", read: promptsOf },
};

/** The kind that a method lists; undefined for one that lists nothing. */
export function listedBy(method: unknown): OfferKind | undefined {
  return (Object.keys(OFFERS) as OfferKind[]).find((kind) => OFFERS[kind].list === method);
}

/** The inputs of an agent for one of them with these values. */
export function requestFor(kind: OfferKind, name: string, values: JsonObject): JsonObject {
  if (kind === "tools") return { method: "tools/call", tool: name, arguments: values };
  if (kind === "resources") return { method: "resources/read", arguments: { uri: name } };
  if (kind === "templates") return { method: "resources/read", arguments: { uri: expanded(name, values) } };
  return { method: "prompts/get", arguments: { name, arguments: values } };
}

/** Which of them a call was for, and with which values; undefined for a list. */
export function requestedBy(workload: JsonObject): { kind: OfferKind; name: string; values: JsonObject } | undefined {
  const given = isJsonObject(workload["arguments"]) ? workload["arguments"] : {};
  const { method } = workload;
  if (method === "tools/call") return { kind: "tools", name: String(workload["tool"] ?? ""), values: given };
  if (method === "resources/read") return { kind: "resources", name: String(given["uri"] ?? ""), values: {} };
  if (method !== "prompts/get") return undefined;
  const inner = given["arguments"];
  return { kind: "prompts", name: String(given["name"] ?? ""), values: isJsonObject(inner) ? inner : {} };
}

/** The resources within what an agent gave for `resources/list`: each is named by its address and read without arguments. */
function resourcesOf(result: unknown): McpTool[] {
  return listWithin(result, "resources").map((raw) => ({
    name: textAt(raw, "uri"),
    title: textAt(raw, "title") || textAt(raw, "name"),
    description: [textAt(raw, "description"), textAt(raw, "mimeType")].filter((text) => text !== "").join(" · "),
    inputSchema: { additionalProperties: false },
    hints: [],
    raw,
  }));
}

/** Resources whose address has parts to fill in: a field for each of them. */
function templatesOf(result: unknown): McpTool[] {
  return listWithin(result, "resourceTemplates").map((raw) => {
    const uri = textAt(raw, "uriTemplate");
    const names = [...new Set(variablesOf(uri))];
    return {
      name: uri,
      title: textAt(raw, "title") || textAt(raw, "name"),
      description: [textAt(raw, "description"), textAt(raw, "mimeType")].filter((text) => text !== "").join(" · "),
      inputSchema: {
        properties: Object.fromEntries(names.map((name): [string, JsonObject] => [name, { type: "string" }])),
        required: names,
        additionalProperties: false,
      },
      hints: [],
      raw,
    };
  });
}

/** Expressions of a template of addresses (RFC 6570): an operator, and names with or without a modifier. */
const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

function variablesOf(template: string): string[] {
  return [...template.matchAll(EXPRESSION)].flatMap(([, , names = ""]) => names.split(",").map(bareName));
}

/** The address that a template is with these values. */
function expanded(template: string, values: JsonObject): string {
  return template.replace(EXPRESSION, (_, operator: string, names: string) => {
    const isRaw = operator === "+" || operator === "#";
    const isNamed = operator === "?" || operator === "&" || operator === ";";
    const parts = names.split(",").map((written) => {
      const name = bareName(written);
      const text = String(values[name] ?? "");
      const value = isRaw ? encodeURI(text) : encodeURIComponent(text);
      return isNamed ? `${name}=${value}` : value;
    });
    const between = operator === "?" || operator === "&" ? "&" : operator === "" || isRaw ? "," : operator;
    return (operator === "+" ? "" : operator) + parts.join(between);
  });
}

/** `name*` and `name:3` are values of `name`. */
function bareName(written: string): string {
  return written.trim().replace(/(\*|:\d+)$/, "");
}

/** The prompts within what it gave for `prompts/list`. Their arguments are texts. */
function promptsOf(result: unknown): McpTool[] {
  return listWithin(result, "prompts").map((raw) => {
    const written = own(raw, "arguments");
    const named = (Array.isArray(written) ? written : []).filter(isJsonObject);
    const properties = named.map((one): [string, JsonObject] => [
      textAt(one, "name"),
      { type: "string", description: textAt(one, "description") },
    ]);
    return {
      name: textAt(raw, "name"),
      title: textAt(raw, "title"),
      description: textAt(raw, "description"),
      inputSchema: {
        properties: Object.fromEntries(properties),
        required: named.filter((one) => own(one, "required") === true).map((one) => textAt(one, "name")),
        additionalProperties: false,
      },
      hints: [],
      raw,
    };
  });
}

function textAt(from: JsonObject, key: string): string {
  const value = own(from, key);
  return typeof value === "string" ? value : "";
}
