import type { Tool, ToolCall } from "../../src/tools/contract/tool.ts";
import { createPythonTool, type PythonToolOptions } from "../../src/tools/python/python.ts";
import { toolCall } from "../support/service/tool-call.ts";

/** Which interpreter the tests use: set FLOW_PYTHON to run them with another version. */
export const TEST_PYTHON = process.env["FLOW_PYTHON"] ?? "python3";

/** A tool for one test file; close it when the file ends. */
export function testTool(options: PythonToolOptions = {}): Tool {
  return createPythonTool({ pythonPath: TEST_PYTHON, maxCount: 2, ...options });
}

/** A call that runs `code`, which stands from line 10 of flow.yaml on. Lines that the task logs go to `lines`. */
export function pythonCall(code: string, more: Partial<ToolCall> = {}, lines: string[] = []): ToolCall {
  const log = (line: string) => lines.push(line);
  return toolCall({ code }, { task: "work", source: { file: "flow.yaml", codeLine: 10 }, log, ...more });
}
