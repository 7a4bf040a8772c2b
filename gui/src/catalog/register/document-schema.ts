import type { JsonObject } from "../../../../src/schema/words/json.ts";

/** The JSON Schema of playbooks, 80 KB of text: loaded when the editor opens. */
export async function playbookSchema(): Promise<JsonObject> {
  const { default: text } = await import("../../../../playbooks/playbook.schema.json?raw");
  return JSON.parse(text) as JsonObject;
}
