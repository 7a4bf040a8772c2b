import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolCall } from "../../../src/tools/contract/tool.ts";

/** A call with coherent defaults, whose log lines can be read. */
export function toolCall(config: JsonObject, more: Partial<ToolCall> = {}): ToolCall & { lines: string[] } {
  const lines: string[] = [];
  return {
    config,
    input: {},
    auth: {},
    executionId: "1001",
    trustDomain: "",
    step: "step",
    task: "task",
    attempt: 1,
    taskRunId: "1001-step-task-1",
    signal: new AbortController().signal,
    log: (line) => lines.push(line),
    names: () => ({}),
    source: { file: "playbook.yaml" },
    ...more,
    lines,
  };
}
