import { plainPath } from "../../language/document/catalog-path.ts";
import { callRefusal } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { McpResource } from "../../schema/words/mcp-resource.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Executions } from "../executions/executions.ts";
import type { ExecutionRequest, Started } from "../executions/start-execution.ts";
import { findEntry, findMcpResource } from "./find-resource.ts";

/** An action on an MCP resource, as a caller asks for it. */
export interface LifecycleRequest
  extends Pick<ExecutionRequest, "idempotency" | "startedBy" | "traceparent" | "may" | "log"> {
  /** Catalog path of the resource; `mcp/` before it may be left out. */
  resource: string;
  action: string;
  /** Asked for the resource and for the action's playbook; refuses by throwing. */
  permit(path: string): Promise<void>;
}

/** What {@link runLifecycleAction} needs. */
export interface LifecycleDeps {
  catalog: Pick<Catalog, "find">;
  executions: Pick<Executions, "start">;
}

/** The execution of the action's playbook. */
export interface LifecycleStarted extends Started {
  /** Catalog path of the resource. */
  resource: string;
}

/**
 * Runs the playbook that an MCP resource names for an action (interface specification, Results and lifecycle), with
 * `{action, server, endpoint, transport}` as its inputs. Rejects with `FlowError` NOT_FOUND for an unknown resource, for an action
 * that it has no playbook for, and for a playbook that is not registered; and with what `permit` and starting throw.
 */
export function runLifecycleAction({
  catalog,
  executions,
}: LifecycleDeps): (request: LifecycleRequest) => Promise<LifecycleStarted> {
  return async ({ resource: name, action, permit, ...about }) => {
    const resource = await findMcpResource(catalog, name);
    // Check permission before lookup, so that a refused caller cannot probe which resources exist.
    await permit(resource?.path ?? name);
    if (resource === undefined)
      throw new FlowError("NOT_FOUND", `There is no MCP resource '${name}' nor 'mcp/${name}'`);
    const path = resource.lifecycle.get(action);
    if (path === undefined) throw noSuchAction(resource, action);
    await permit(path);
    // The resource's author chose the playbook and its inputs; the caller's rights must not serve them.
    const why = callRefusal(resource.path, plainPath(path));
    if (why !== undefined) throw new FlowError("SYSTEM_PLAYBOOK", `${why}. Start it by itself`, { detail: { path } });
    const playbook = await findEntry(catalog, path);
    const resourceKind = playbook?.kind === "agent" ? "agent" : "playbook";
    const started = await executions.start({ ...about, path, resourceKind, input: inputOf(resource, action) });
    return { ...started, resource: resource.path };
  };
}

/** What the playbook of an action knows of its resource. */
function inputOf({ path, endpoint, transport }: McpResource, action: string): JsonObject {
  return { action, server: path, endpoint, transport: transport ?? null };
}

function noSuchAction({ path, lifecycle }: McpResource, action: string): FlowError {
  const known = [...lifecycle.keys()].sort().join(", ");
  const has = known === "" ? "it has no `spec.lifecycle`" : `its spec.lifecycle has ${known}`;
  return new FlowError("NOT_FOUND", `The MCP resource '${path}' has no action '${action}': ${has}`);
}
