import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as v from "valibot";
import { messageOf } from "../schema/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../schema/json.ts";
import type { ToolResult } from "../schema/outcome.ts";
import { AnyJson, configurationError, MapOfJson, parseConfig, TextLike } from "./config.ts";
import type { PythonRequest } from "./python-interpreter.ts";
import type { ToolCall } from "./tool.ts";

/** A script is code that somebody wrote: one that is larger is another file, given by mistake. */
const SCRIPT_BYTES_MAX = 4 * 1024 * 1024;

/** The code of a python task, and how its lines are called in messages. */
export type PythonSource = Pick<PythonRequest, "code" | "label" | "firstLine" | "libs">;

/** Fetches a script: a call of the `http` tool with the given config. */
export type FetchScript = (call: ToolCall) => Promise<ToolResult>;

/**
 * Code and libs of the task (language document, section 8): `code`, else `code_b64`, else `script`. A script that cannot
 * be fetched over HTTP gives the failure of the request. Throws FlowError `INVALID_INPUT` when there is no code, or a
 * script cannot be read.
 */
export async function pythonSource(
  call: ToolCall,
  fetchScript: FetchScript | undefined,
): Promise<PythonSource | ToolResult> {
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
  if (typeof config.script === "string") return { ...(await readScript(config.script, file)), libs };
  const { uri, source } = config.script;
  const inline = config.script.code ?? source?.code;
  const type = source?.type ?? (inline === undefined ? "file" : "inline");
  if (type === "inline") {
    if (inline === undefined)
      throw configurationError('The python task\'s script is inline, but has no "source.code".');
    if (codeLine === undefined) return { code: inline, label: `${file} (script)`, firstLine: 1, libs };
    return { code: inline, label: file, firstLine: codeLine, libs };
  }
  if (type === "http" && fetchScript !== undefined) {
    const fetched = await fetchOver(fetchScript, call, { url: source?.endpoint ?? uri, ...source });
    return "code" in fetched ? { ...fetched, libs } : fetched;
  }
  if (type !== "file") throw cannotLoad(type);
  if (uri === undefined) throw configurationError('The python task\'s script has no "uri": the path of its file.');
  return { ...(await readScript(uri, file)), libs };
}

const Config = v.object({
  code: v.exactOptional(TextLike),
  code_b64: v.exactOptional(TextLike),
  script: v.exactOptional(
    v.union(
      [
        v.pipe(v.string(), v.nonEmpty()),
        v.object({
          uri: v.exactOptional(v.string()),
          code: v.exactOptional(v.string()),
          source: v.exactOptional(
            v.object({
              type: v.exactOptional(v.string()),
              code: v.exactOptional(v.string()),
              endpoint: v.exactOptional(v.string()),
              method: v.exactOptional(v.string()),
              headers: v.exactOptional(MapOfJson),
              auth: v.exactOptional(AnyJson),
            }),
          ),
        }),
      ],
      'expects the path of a file, or a map with "uri" and "source"',
    ),
  ),
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

/** A path is relative to the folder of the playbook, so that a playbook and its scripts can be moved together. */
async function readScript(uri: string, file: string): Promise<Omit<PythonSource, "libs">> {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(uri)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "file") throw cannotLoad(scheme);
  try {
    const path = scheme === "file" ? fileURLToPath(uri) : resolve(dirname(file), uri);
    const found = await stat(path);
    if (!found.isFile()) throw new Error(`${path} is not a file`);
    if (found.size > SCRIPT_BYTES_MAX)
      throw new Error(`${path} has ${found.size} bytes, more than ${SCRIPT_BYTES_MAX}`);
    const code = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path));
    return { code, label: uri, firstLine: 1 };
  } catch (error) {
    throw configurationError(
      `Cannot read the script "${uri}" of the python task: ${messageOf(error)}. ` +
        `A path is relative to the folder of the playbook, ${dirname(file)}.`,
      error,
    );
  }
}

/** The text behind an address. The task's time-out holds for the request too. */
async function fetchOver(
  fetchScript: FetchScript,
  call: ToolCall,
  source: { url: string | undefined; method?: string; headers?: JsonObject; auth?: Json },
): Promise<Omit<PythonSource, "libs"> | ToolResult> {
  const { url, method = "GET", headers = {}, auth } = source;
  if (url === undefined) throw configurationError('The python task\'s script has no "source.endpoint": its address.');
  const config: JsonObject = { url, method, headers, ...(auth !== undefined && { auth }) };
  const result = await fetchScript({ ...call, config });
  if (result.status === "error") return result;
  const text = isJsonObject(result.data) ? own(result.data, "data") : undefined;
  if (typeof text !== "string") throw configurationError(`What "${url}" answers for the python task is not a script.`);
  return { code: text, label: url, firstLine: 1 };
}

function cannotLoad(type: string) {
  return configurationError(
    `The python task's script comes from "${type}", and only inline code, files and http can be loaded. ` +
      'Fetch the text with an http task before, and give it as "code".',
  );
}
