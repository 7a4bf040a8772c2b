import * as v from "valibot";
import type { Json } from "../../schema/words/json.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";
import { AnyJson, configurationError, parseConfig, TextLike } from "../contract/task-config.ts";
import type { ToolCall } from "../contract/tool.ts";
import { loadScript, Script, type ScriptPlaces } from "../scripts/script-source.ts";
import type { PythonRequest } from "./messages.ts";

/** The code of a python task, and how its lines are called in messages. */
export type PythonSource = Pick<PythonRequest, "code" | "label" | "firstLine" | "libs">;

/**
 * Code and libs of the task (language document, section 8): `code`, else `code_b64`, else `script`. A script that cannot
 * be fetched over HTTP gives the failure of the request. Throws FlowError `INVALID_INPUT` when there is no code, or a
 * script cannot be read.
 */
export async function pythonSource(call: ToolCall, places: ScriptPlaces): Promise<PythonSource | ToolResult> {
  const config = parseConfig("python", Config, call.config);
  const libs = libsOf(config.libs);
  const { file, codeLine } = call.source;
  if (config.code !== undefined) {
    if (codeLine === undefined) return { code: config.code, label: `${file} (code)`, firstLine: 1, libs };
    return { code: config.code, label: file, firstLine: codeLine, libs };
  }
  if (config.code_b64 !== undefined) {
    return { code: decodeBase64(config.code_b64), label: `${file} (code_b64)`, firstLine: 1, libs };
  }
  if (config.script === undefined) {
    throw configurationError(
      'The python task has no code. Give it as "code" (text), "code_b64" (the same in base64) or "script" (a file).',
    );
  }
  const loaded = await loadScript("python", config.script, call, places);
  return "code" in loaded ? { ...loaded, libs } : loaded;
}

const Config = v.object({
  code: v.exactOptional(TextLike),
  code_b64: v.exactOptional(TextLike),
  script: v.exactOptional(Script),
  libs: v.exactOptional(AnyJson),
});

/** Names as Python has them. Keywords are left to Python, which says itself what is wrong with them. */
const IDENTIFIER = /^[\p{L}_][\p{L}\p{N}_]*$/u;

const Libs = v.record(
  v.pipe(v.string(), v.regex(IDENTIFIER, "the name to import as is not a Python identifier")),
  v.union(
    [v.pipe(v.string(), v.nonEmpty()), v.object({ from: v.string(), import: v.string() })],
    "expects the name of a module, or {from: module, import: name}",
  ),
);

/** A list names packages that should be there; nothing is imported for it. */
function libsOf(libs: Json | undefined): PythonSource["libs"] {
  if (libs === undefined || Array.isArray(libs)) return {};
  const parsed = v.safeParse(Libs, libs);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const place = ["libs", v.getDotPath(issue)].filter((part) => part !== null).join(".");
  throw configurationError(
    `The python task is not configured correctly: key "${place}": ${issue.message}. For example libs: {np: numpy}.`,
  );
}

function decodeBase64(text: string): string {
  const compact = text.replace(/\s+/g, "");
  const problem = "The python task's code_b64 is not";
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(compact)) throw configurationError(`${problem} base64.`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(compact, "base64"));
  } catch (error) {
    throw configurationError(`${problem} UTF-8 text in base64.`, error);
  }
}
