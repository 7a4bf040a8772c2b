import * as v from "valibot";
import type { Json } from "../schema/json.ts";
import type { ToolResult } from "../schema/outcome.ts";
import { AnyJson, configurationError, MapOfJson, parseConfig, TextLike } from "./config.ts";
import type { PythonRequest } from "./python-interpreter.ts";
import { pinMismatch, readScriptFile, type ScriptFiles } from "./python-script-file.ts";
import { addressForPeople, type ScriptFetcher } from "./python-script-http.ts";
import { SCRIPT_AUTH } from "./script.ts";
import type { ToolCall } from "./tool.ts";

/** The code of a python task, and how its lines are called in messages. */
export type PythonSource = Pick<PythonRequest, "code" | "label" | "firstLine" | "libs">;

/** Where scripts may come from. */
export interface ScriptPlaces {
  files: ScriptFiles;
  /** Absent: scripts behind addresses are refused. */
  fetcher?: ScriptFetcher | undefined;
}

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
  const script: Script = typeof config.script === "string" ? { uri: config.script } : config.script;
  const loaded = await loadScript(script, call, places);
  return "code" in loaded ? { ...loaded, libs } : loaded;
}

type Loaded = Omit<PythonSource, "libs">;

async function loadScript(script: Script, call: ToolCall, places: ScriptPlaces): Promise<Loaded | ToolResult> {
  const type = typeOf(script);
  if (type === "inline") return inlineScript(script, call);
  if (type === "http" && places.fetcher !== undefined) return await fetchScript(script, call, places.fetcher);
  if (type !== "file") throw cannotLoad(type);
  const { uri } = script;
  if (uri === undefined) throw configurationError('The python task\'s script has no "uri": the path of its file.');
  const bytes = await readScriptFile(uri, call.source.file, places.files);
  const changed = pinMismatch(bytes, sha256Of(script), `The script "${uri}"`);
  return changed ?? { code: decodeScript(bytes, uri), label: uri, firstLine: 1 };
}

/** Where nothing says it: code beside it is inline, an address is fetched, anything else is a path. */
function typeOf({ uri, code, source }: Script): string {
  const type = source?.type?.toLowerCase();
  if (type !== undefined) return type === "https" ? "http" : type;
  if ((code ?? source?.code) !== undefined) return "inline";
  if (source?.endpoint !== undefined) return "http";
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(uri ?? "")?.[1]?.toLowerCase() ?? "file";
  return scheme === "https" ? "http" : scheme;
}

function inlineScript({ code, source }: Script, { source: { file, codeLine } }: ToolCall): Loaded {
  const inline = code ?? source?.code;
  if (inline === undefined) throw configurationError('The python task\'s script is inline, but has no "source.code".');
  if (codeLine === undefined) return { code: inline, label: `${file} (script)`, firstLine: 1 };
  return { code: inline, label: file, firstLine: codeLine };
}

/** Longest duration of a script's request where its source does not say, in seconds. */
const FETCH_SECONDS = 30;

async function fetchScript(script: Script, call: ToolCall, fetcher: ScriptFetcher): Promise<Loaded | ToolResult> {
  const { source = {} } = script;
  const url = addressOf(script);
  // The credential that the script's own `auth` names, else that of the task.
  const named = call.auth[SCRIPT_AUTH];
  const fetched = await fetcher.fetch(call, {
    url,
    method: (source.method ?? "GET").toUpperCase(),
    headers: source.headers ?? {},
    auth: source.auth,
    credentials: source.auth === undefined ? call.auth : named === undefined ? {} : { default: named },
    timeoutMs: (source.timeout ?? FETCH_SECONDS) * 1_000,
    sha256: sha256Of(script),
  });
  return typeof fetched === "string" ? { code: fetched, label: addressForPeople(url), firstLine: 1 } : fetched;
}

/** `source.endpoint`, or `uri`; a relative `uri` is looked up below an endpoint that ends in `/`. */
function addressOf({ uri, source }: Script): string {
  const endpoint = source?.endpoint;
  if (endpoint === undefined && uri === undefined) {
    throw configurationError('The python task\'s script has no "source.endpoint": its address.');
  }
  if (endpoint === undefined || uri === undefined) return endpoint ?? uri ?? "";
  return endpoint.endsWith("/") && URL.canParse(uri, endpoint)
    ? new URL(uri.replace(/^\/+/, ""), endpoint).href
    : endpoint;
}

function sha256Of({ sha256, source }: Script): string | undefined {
  return sha256 ?? source?.sha256;
}

function decodeScript(bytes: Buffer, uri: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw configurationError(`The script "${uri}" of the python task is not valid UTF-8 text.`, error);
  }
}

const Sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i, "expects 64 hexadecimal digits"));
const Seconds = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^\d+(\.\d+)?$/), v.transform(Number))], "expects seconds"),
  v.number(),
  v.gtValue(0, "expects seconds above 0"),
  v.maxValue(3_600, "expects an hour at most"),
);

const ScriptMap = v.object({
  uri: v.exactOptional(v.string()),
  code: v.exactOptional(v.string()),
  sha256: v.exactOptional(Sha256),
  source: v.exactOptional(
    v.object({
      type: v.exactOptional(v.string()),
      code: v.exactOptional(v.string()),
      endpoint: v.exactOptional(v.string()),
      method: v.exactOptional(v.string()),
      headers: v.exactOptional(MapOfJson),
      auth: v.exactOptional(AnyJson),
      timeout: v.exactOptional(Seconds),
      sha256: v.exactOptional(Sha256),
    }),
  ),
});
type Script = v.InferOutput<typeof ScriptMap>;

const Config = v.object({
  code: v.exactOptional(TextLike),
  code_b64: v.exactOptional(TextLike),
  script: v.exactOptional(
    v.union(
      [v.pipe(v.string(), v.nonEmpty()), ScriptMap],
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

/** `gcs`, `s3` and whatever else an author may name. */
function cannotLoad(type: string) {
  return configurationError(
    `The python task's script comes from "${type}", and only inline code, files and http can be loaded. ` +
      'Give an address that answers over https (a signed one, for example) as "source" of type http, or fetch the text with ' +
      'an http task before, and give it as "code".',
  );
}
