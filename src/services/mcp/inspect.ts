import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Drafts } from "../drafts/drafts.ts";
import type { DraftRequest } from "../drafts/start-draft.ts";
import type { Started } from "../executions/start-execution.ts";
import { findMcpResource } from "./find-resource.ts";

/** One call to an MCP resource, as a caller asks for it. */
export interface InspectRequest extends Omit<DraftRequest, "content" | "input" | "permit" | "caller"> {
  /** Catalog path of the resource; `mcp/` before it may be left out. */
  resource: string;
  method: string;
  tool: string | undefined;
  arguments: JsonObject;
  /** Asked for the resource; refuses by throwing. */
  permit(path: string): Promise<void>;
  /** In whose name the text is read. */
  callerOf(content: string): DraftRequest["caller"];
}

/** The execution that calls the resource. */
export interface InspectStarted extends Started {
  /** Catalog path of the resource. */
  resource: string;
}

/**
 * Calls an MCP resource by an execution of one task, so that a call has a log, rights and an entry of the audit log as every run has. Its
 * text is made here and stands under the resource's path: who may execute the resource may call it, and who may view it sees the calls.
 * Rejects with `FlowError` NOT_FOUND for an unknown resource, and with what `permit` and starting throw.
 */
export function inspectMcpResource(deps: {
  catalog: Pick<Catalog, "find">;
  drafts: Pick<Drafts, "start">;
}): (request: InspectRequest) => Promise<InspectStarted> {
  return async ({ resource: name, method, tool, arguments: given, permit, callerOf, ...about }) => {
    const resource = await findMcpResource(deps.catalog, name);
    // Check permission before lookup, so that a refused caller cannot probe which resources exist.
    await permit(resource?.path ?? name);
    if (resource === undefined)
      throw new FlowError("NOT_FOUND", `There is no MCP resource '${name}' nor 'mcp/${name}'`);
    const content = textOf(resource.path);
    const started = await deps.drafts.start({
      ...about,
      content,
      caller: callerOf(content),
      input: { method, tool: tool ?? null, arguments: given },
      // It was asked above, and nothing of the text is the caller's.
      permit: () => Promise.resolve(),
    });
    return { ...started, resource: resource.path };
  };
}

/** A playbook of one call. JSON is YAML, and quotes what a path may contain. */
function textOf(path: string): string {
  const call = {
    kind: "mcp",
    server: path,
    method: "{{ workload.method }}",
    tool: "{{ workload.tool }}",
    arguments: "{{ workload.arguments }}",
    messages: true,
  };
  return JSON.stringify({
    apiVersion: "flow/v2",
    kind: "Playbook",
    metadata: { name: "inspect", path, description: "One call to an MCP server, made by its page." },
    workload: { method: "health", tool: null, arguments: {} },
    workflow: [{ step: "call", tool: call }],
  });
}
