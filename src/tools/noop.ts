import { isJsonObject } from "../schema/words/json.ts";
import { failed } from "../schema/words/outcome.ts";
import type { Tool } from "./contract/tool.ts";

/** `noop`: does nothing and answers `result`, or `{status: ok}` without one (language document, section 8). */
export function createNoopTool(): Tool {
  return {
    run(call) {
      const result = call.config["result"] ?? null;
      if (result === null) return Promise.resolve({ status: "ok", data: { status: "ok" } });
      if (isJsonObject(result)) return Promise.resolve({ status: "ok", data: result });
      const message = `The noop task is not configured correctly: key "result" expects a map, got ${typeName(result)}.`;
      return Promise.resolve(failed("configuration", "INVALID_CONFIG", message));
    },
  };
}

function typeName(value: unknown): string {
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
