import type { JsonObject } from "../../../src/schema/words/json.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../../../src/schema/words/outcome.ts";
import type { Tool, ToolCall } from "../../../src/tools/contract/tool.ts";
import { createToolRegistry } from "../../../src/tools/registry.ts";

/** A call as the tool got it. */
export type Call = ToolCall & { kind: string };

/** What a task answers: one answer for each call in turn, the last one again and again, or whatever a function gives. */
export type Script = ToolResult[] | ((call: Call) => ToolResult | Promise<ToolResult>);

/** By the task's label, else by its kind. A kind without a script answers what it was given: `{config, input}`. */
export type Scripts = Record<string, Script>;

/** Tools that answer from scripts. `noop` and kinds that nothing runs are the real ones. */
export function scriptedTools(
  scripts: Scripts,
  onCall: (call: Call) => void,
  defaultTimeoutMs?: number,
): { get(kind: string): Promise<Tool> } {
  const real = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.resolve(null) } });
  const turns = new Map<string, number>();
  const answer = (call: Call): ToolResult | Promise<ToolResult> => {
    const name = Object.hasOwn(scripts, call.task) ? call.task : call.kind;
    const script = scripts[name];
    if (script === undefined) return ok({ config: call.config, input: call.input });
    if (typeof script === "function") return script(call);
    const turn = turns.get(name) ?? 0;
    turns.set(name, turn + 1);
    return script[Math.min(turn, script.length - 1)] ?? ok({});
  };
  return {
    async get(kind) {
      if (!SCRIPTED.has(kind)) return await real.get(kind);
      return {
        ...(defaultTimeoutMs !== undefined && { defaultTimeoutMs }),
        run(given) {
          const call = { ...given, kind };
          onCall(call);
          return Promise.resolve(answer(call));
        },
      };
    },
  };
}

const SCRIPTED: ReadonlySet<string> = new Set(["http", "shell", "python", "sqldb", "mcp", "artifact"]);

/** A success. */
export function ok(data: ToolResult["data"], more: Partial<ToolResult> = {}): ToolResult {
  return { status: "ok", data, ...more };
}

/** A failure; retryable as its kind says. */
export function bad(kind: TaskErrorKind, code: string, more: Partial<ToolResult> = {}): ToolResult {
  return { ...failed(kind, code, `it failed with ${code}`), ...more };
}

/** An answer of an HTTP server. */
export function http(status: number, data: ToolResult["data"], headers: JsonObject = {}): ToolResult {
  const answer = { data: { status_code: status, headers, data }, http: { status, headers } };
  return status < 400
    ? ok(answer.data, answer)
    : bad(status < 500 ? "client_error" : "server_error", `HTTP_${status}`, answer);
}

/** A tool that works until it is told to stop, as one does whose server never answers. */
export function untilStopped(call: Call, atStop: () => void = () => undefined): Promise<ToolResult> {
  return new Promise((resolve) => {
    call.signal.addEventListener("abort", () => {
      atStop();
      resolve(bad("connection", "STOPPED"));
    });
  });
}

/** A text of `length` characters that is not the same everywhere. */
export function longText(length: number): string {
  return "0123456789abcdef".repeat(Math.ceil(length / 16)).slice(0, length);
}
