import { createHash } from "node:crypto";
import { defined } from "../../schema/words/defined.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential, Tool, ToolCall } from "../contract/tool.ts";
import { pinMismatch } from "./file.ts";

/** Where a script is fetched from: the keys of its `source`, and its `uri`. */
export interface ScriptAddress {
  url: string;
  method: string;
  headers: JsonObject;
  /** As written: an inline map is taken as it is, a name was resolved by the worker into `credentials`. */
  auth: Json | undefined;
  credentials: Readonly<Record<string, Credential>>;
  /** Longest duration of the request, in milliseconds. */
  timeoutMs: number;
  /** What is fetched must be this; nothing can make a kept copy of it old. */
  sha256: string | undefined;
}

/** Fetches scripts over HTTP. */
export interface ScriptFetcher {
  /** The text, or the failure of the request. Throws FlowError `INVALID_INPUT` when what came is no text. */
  fetch(call: ToolCall, address: ScriptAddress): Promise<string | ToolResult>;
  close(): Promise<void>;
}

/** For so long a copy is used without asking, in milliseconds: the iterations of a loop make one request and not thousands. */
const FRESH_MS = 10_000;
/** How long after its last use a copy is kept, to be revalidated with its etag, in milliseconds. */
const KEPT_MS = 600_000;
/** Most copies. */
const COPIES_MAX = 64;

interface Copy {
  text: string;
  etag: string | undefined;
  checkedAt: number;
}

/**
 * Fetches scripts with a separate `http` tool, so with its guard, limits and redirects. A text with an etag, or whose sha256
 * the playbook names, is cached: for 10 seconds without a request, then for as long as the server answers that it is unchanged.
 * A copy is used only for the same address, headers and credentials.
 */
export function createScriptFetcher(http: () => Promise<Tool>, now: () => number = Date.now): ScriptFetcher {
  const copies = new Map<string, Copy>();
  let tool: Promise<Tool> | undefined;

  const keep = (key: string, copy: Copy) => {
    copies.delete(key);
    copies.set(key, copy);
    for (const [name, { checkedAt }] of copies) {
      if (copies.size <= COPIES_MAX && checkedAt > now() - KEPT_MS) break;
      copies.delete(name);
    }
  };

  return {
    async fetch(call, address) {
      const key = keyOf(address);
      const known = address.method === "GET" ? copies.get(key) : undefined;
      if (known !== undefined && (address.sha256 !== undefined || now() - known.checkedAt < FRESH_MS))
        return known.text;
      tool ??= http();
      const result = await (await tool).run(requestOf(call, address, known?.etag));
      if (result.http?.status === 304 && known !== undefined) {
        keep(key, { ...known, checkedAt: now() });
        return known.text;
      }
      if (result.status === "error") return result;
      const text = textOf(result, address.url);
      const changed = pinMismatch(text, address.sha256, `What ${addressForPeople(address.url)} answers`);
      if (changed !== undefined) return changed;
      const etag = header(result, "etag");
      const isKnown = etag !== undefined || address.sha256 !== undefined;
      const isPrivate = /no-store/i.test(header(result, "cache-control") ?? "");
      if (address.method === "GET" && isKnown && !isPrivate) keep(key, { text, etag, checkedAt: now() });
      return text;
    },
    async close() {
      copies.clear();
      await (await tool)?.close?.();
    },
  };
}

function requestOf(call: ToolCall, address: ScriptAddress, etag: string | undefined): ToolCall {
  const { url, method, headers, auth, credentials, timeoutMs } = address;
  const config: JsonObject = {
    url,
    method,
    headers: { ...headers, ...defined({ "if-none-match": etag }) },
    ...(isJsonObject(auth) && { auth }),
  };
  return { ...call, config, auth: credentials, signal: AbortSignal.any([call.signal, AbortSignal.timeout(timeoutMs)]) };
}

/** With the secrets in it, as a digest: another caller's copy is not for this one. */
function keyOf({ url, headers, auth, credentials, sha256 }: ScriptAddress): string {
  const data = Object.values(credentials).map((credential) => [credential.type, credential.data]);
  return createHash("sha256")
    .update(JSON.stringify([url, headers, auth ?? null, data, sha256 ?? null]))
    .digest("hex");
}

function textOf(result: ToolResult, url: string): string {
  const data = isJsonObject(result.data) ? result.data : {};
  const text = own(data, "data");
  if (typeof text === "string" && own(data, "encoding") === undefined) return text;
  throw configurationError(`What ${addressForPeople(url)} answers for the python task is not a script.`);
}

function header(result: ToolResult, name: string): string | undefined {
  const value = result.http === undefined ? undefined : own(result.http.headers, name);
  return typeof value === "string" ? value : undefined;
}

/** Without user, query and fragment, where a key may stand. */
export function addressForPeople(url: string): string {
  if (!URL.canParse(url)) return `"${(url.split("?")[0] ?? "").slice(0, 200)}"`;
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
