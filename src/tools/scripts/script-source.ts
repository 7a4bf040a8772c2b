import * as v from "valibot";
import type { ToolResult } from "../../schema/words/outcome.ts";
import { AnyJson, configurationError, MapOfJson } from "../contract/task-config.ts";
import type { ToolCall } from "../contract/tool.ts";
import { SCRIPT_AUTH } from "./auth.ts";
import { pinMismatch, readScriptFile, type ScriptFiles } from "./file.ts";
import { addressForPeople, type ScriptFetcher } from "./http.ts";

/** Where scripts may come from. */
export interface ScriptPlaces {
  files: ScriptFiles;
  /** Absent: scripts behind addresses are refused. */
  fetcher?: ScriptFetcher | undefined;
}

/** A script's text, and how its lines are called in messages. */
export interface LoadedScript {
  code: string;
  label: string;
  firstLine: number;
}

/**
 * The text of a `script` (language document, section 8): inline, of a file, or behind an address; a text alone is the path of a
 * file. `kind` is the task's, for messages. A script that cannot be fetched over HTTP gives the failure of the request. Throws
 * FlowError `INVALID_INPUT` when it cannot be read.
 */
export async function loadScript(
  kind: string,
  written: v.InferOutput<typeof Script>,
  call: ToolCall,
  places: ScriptPlaces,
): Promise<LoadedScript | ToolResult> {
  const script: ScriptParts = typeof written === "string" ? { uri: written } : written;
  const type = typeOf(script);
  if (type === "inline") return inlineScript(kind, script, call);
  if (type === "http" && places.fetcher !== undefined) return await fetchScript(kind, script, call, places.fetcher);
  if (type !== "file") throw cannotLoad(kind, type);
  const { uri } = script;
  if (uri === undefined) throw configurationError(`The ${kind} task's script has no "uri": the path of its file.`);
  const bytes = await readScriptFile(kind, uri, call.source.file, places.files);
  const changed = pinMismatch(bytes, sha256Of(script), `The script "${uri}"`);
  return changed ?? { code: decodeScript(kind, bytes, uri), label: uri, firstLine: 1 };
}

/** Where nothing says it: code beside it is inline, an address is fetched, anything else is a path. */
function typeOf({ uri, code, source }: ScriptParts): string {
  const type = source?.type?.toLowerCase();
  if (type !== undefined) return type === "https" ? "http" : type;
  if ((code ?? source?.code) !== undefined) return "inline";
  if (source?.endpoint !== undefined) return "http";
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(uri ?? "")?.[1]?.toLowerCase() ?? "file";
  return scheme === "https" ? "http" : scheme;
}

function inlineScript(
  kind: string,
  { code, source }: ScriptParts,
  { source: { file, codeLine } }: ToolCall,
): LoadedScript {
  const inline = code ?? source?.code;
  if (inline === undefined) throw configurationError(`The ${kind} task's script is inline, but has no "source.code".`);
  if (codeLine === undefined) return { code: inline, label: `${file} (script)`, firstLine: 1 };
  return { code: inline, label: file, firstLine: codeLine };
}

/** Longest duration of a script's request where its source does not say, in seconds. */
const FETCH_SECONDS = 30;

async function fetchScript(
  kind: string,
  script: ScriptParts,
  call: ToolCall,
  fetcher: ScriptFetcher,
): Promise<LoadedScript | ToolResult> {
  const { source = {} } = script;
  const url = addressOf(kind, script);
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
function addressOf(kind: string, { uri, source }: ScriptParts): string {
  const endpoint = source?.endpoint;
  if (endpoint === undefined && uri === undefined) {
    throw configurationError(`The ${kind} task's script has no "source.endpoint": its address.`);
  }
  if (endpoint === undefined || uri === undefined) return endpoint ?? uri ?? "";
  return endpoint.endsWith("/") && URL.canParse(uri, endpoint)
    ? new URL(uri.replace(/^\/+/, ""), endpoint).href
    : endpoint;
}

function sha256Of({ sha256, source }: ScriptParts): string | undefined {
  return sha256 ?? source?.sha256;
}

function decodeScript(kind: string, bytes: Buffer, uri: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw configurationError(`The script "${uri}" of the ${kind} task is not valid UTF-8 text.`, error);
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
type ScriptParts = v.InferOutput<typeof ScriptMap>;

/** What a task's `script` may be. */
export const Script = v.union(
  [v.pipe(v.string(), v.nonEmpty()), ScriptMap],
  'expects the path of a file, or a map with "uri" and "source"',
);

/** `gcs`, `s3` and whatever else an author may name. */
function cannotLoad(kind: string, type: string) {
  return configurationError(
    `The ${kind} task's script comes from "${type}", and only inline code, files and http can be loaded. ` +
      'Give an address that answers over https (a signed one, for example) as "source" of type http, or fetch the text with ' +
      "an http task before.",
  );
}
