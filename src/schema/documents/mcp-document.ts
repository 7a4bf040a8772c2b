import * as v from "valibot";
import { anyMap, anything, key, map, mapOf, required, text } from "./document-forms.ts";

/*
 * An MCP resource as authors write it: the address of an MCP server, how to reach it, and the playbooks that deploy, stop
 * or look after it (interface specification, Catalog resource).
 */

/** `metadata` of an MCP resource. */
export const McpMetadata = map({
  name: required(text, "Name of the resource."),
  path: key(text, "Catalog path; default the name."),
  description: key(anything, "What the server offers."),
  version: key(anything, "Free."),
  tags: key(anything, "Free."),
  labels: key(anything, "Free."),
});

/** `spec` of an MCP resource. */
export const McpSpec = map({
  endpoint: key(text, "Address of the MCP server, http or https; templates over `env` may stand in it."),
  url: key(text, "Earlier name of `endpoint`; one of both is needed."),
  transport: key(
    v.picklist(["streamable_http", "sse"]),
    "How the server is spoken to; default whichever it understands.",
  ),
  auth: key(v.union([text, anyMap]), "Credential sent to the server, as a task's `auth`."),
  timeout_seconds: key(v.number(), "Longest that a call may take, in seconds."),
  terminal: key(anyMap, "How terminals show the resource."),
  lifecycle: key(mapOf(text), "Catalog path of the playbook to run, by the name of the action (deploy, status, …)."),
});

/** The document. */
export const McpDocument = map({
  apiVersion: key(text, "Vendor-prefixed version: `<vendor>/v2`."),
  kind: required(v.literal("Mcp"), "Mcp."),
  metadata: required(McpMetadata, "Name and path."),
  spec: required(McpSpec, "The server and its playbooks."),
});
