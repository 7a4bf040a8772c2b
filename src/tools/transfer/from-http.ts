import type { Readable } from "node:stream";
import zlib from "node:zlib";
import { type Agent, type Dispatcher, request as send } from "undici";
import * as v from "valibot";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { failed } from "../../schema/words/outcome.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";
import { configurationError, parseConfig, TextLike } from "../contract/task-config.ts";
import type { ToolCall } from "../contract/tool.ts";
import { decodeBody } from "../http/body.ts";
import type { GuardedAgents } from "../http/dispatcher.ts";
import { requestFailure, statusError } from "../http/errors.ts";
import { followRedirect, REDIRECTS_MAX } from "../http/redirect.ts";
import { describeRequest, type HttpRequest, readHttpTask } from "../http/request.ts";
import { csvRows } from "./csv.ts";
import { jsonRows } from "./json.ts";
import { RowCollector, type RowSource, transferFailure, unreadableRows } from "./rows.ts";

const FormatConfig = v.object({
  format: v.optional(v.picklist(["json", "ndjson", "csv"], "expects json, ndjson or csv")),
  rows_path: v.optional(TextLike),
  delimiter: v.optional(v.pipe(v.string(), v.length(1, "expects one character")), ","),
});

/** Bytes of an error's body that are read for its message. */
const ERROR_BYTES_MAX = 64 * 1024;

/**
 * Rows of an HTTP answer, read while it comes: a JSON list (at `rows_path`), JSON objects line by line, or CSV. The
 * request's keys, authentication and redirects are those of `http`. `fields` are those that a mapping names: one with dots
 * is a path into a row. Throws FlowError `INVALID_INPUT` for keys that do not fit.
 */
export async function httpSource(call: ToolCall, agents: GuardedAgents, fields: readonly string[]): Promise<RowSource> {
  const { format, rows_path: path, delimiter } = parseConfig("transfer", FormatConfig, call.config);
  const task = await readHttpTask(call);
  const redirects = task.followRedirects ? REDIRECTS_MAX : 0;
  return {
    async *batches(limits) {
      const response = await open(call, task.request, agents.of(task.trust), redirects);
      const text = decoded(response, describeRequest(task.request));
      const type = format ?? formatOf(String(response.headers["content-type"] ?? ""));
      const rows = type === "csv" ? csvRows(text, delimiter) : jsonObjects(jsonRows(text, path?.split(".") ?? []));
      const collector = new RowCollector(limits);
      const paths = fields.filter((field) => field.includes("."));
      let columns = new Set<string>();
      try {
        for await (const { row, columns: present, value } of rows as AsyncIterable<SourceRow>) {
          for (const name of present) columns.add(name);
          if (collector.add(paths.length === 0 ? row : withPaths(row, value, paths))) {
            yield { rows: collector.take(), columns: [...columns] };
            columns = new Set();
          }
        }
      } finally {
        response.body.destroy();
      }
      const rest = collector.take();
      if (rest.length > 0) yield { rows: rest, columns: [...columns] };
    },
  };
}

interface SourceRow {
  row: string;
  columns: readonly string[];
  /** Parsed; absent for CSV, whose rows have no inner fields. */
  value?: JsonObject;
}

async function* jsonObjects(texts: AsyncIterable<string>): AsyncGenerator<SourceRow> {
  for await (const row of texts) {
    const value = parsed(row);
    if (!isJsonObject(value)) throw unreadableRows(`A row of the source is not valid JSON: ${row.slice(0, 100)}`);
    yield { row, columns: Object.keys(value), value };
  }
}

function parsed(text: string): Json | undefined {
  try {
    return parseJsonKeepingDigits(text);
  } catch {
    return undefined;
  }
}

/** The row with the value of each path as a separate field; a field with that literal name takes precedence. */
function withPaths(row: string, value: JsonObject | undefined, paths: readonly string[]): string {
  if (value === undefined) return row;
  const inner: JsonObject = {};
  for (const path of paths) {
    if (Object.hasOwn(value, path)) continue;
    let found: unknown = value;
    for (const key of path.split(".")) found = isJsonObject(found) ? own(found, key) : undefined;
    inner[path] = (found ?? null) as Json;
  }
  return JSON.stringify({ ...value, ...inner });
}

function formatOf(type: string): "json" | "csv" {
  return /^\s*(text|application)\/csv\b/i.test(type) ? "csv" : "json";
}

/** The final answer, its body not yet read. Throws a `transferFailure` if the request fails or the status is 400 or more. */
async function open(
  { signal, tokens }: ToolCall,
  first: HttpRequest,
  dispatcher: Agent,
  redirectsMax: number,
): Promise<Dispatcher.ResponseData> {
  let request = first;
  try {
    for (let redirects = 0; ; redirects += 1) {
      const { method, headers, body = null } = request;
      const response = await send(request.url, {
        method: method as Dispatcher.HttpMethod,
        headers,
        body,
        dispatcher,
        signal,
      });
      const location = response.headers["location"];
      const next =
        redirects < redirectsMax ? followRedirect(request, response.statusCode, [location].flat()[0]) : undefined;
      if (next === undefined) {
        if (response.statusCode < 300) return response;
        // A token that was revoked must not be handed out until it would have ended.
        if (response.statusCode === 401) for (const token of request.requestedTokens) tokens?.forget(token);
        throw await statusFailure(request, response);
      }
      await response.body.dump({ limit: ERROR_BYTES_MAX, signal });
      request = next;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error && Object.hasOwn(error, "result")) throw error;
    throw transferFailure(requestFailure(describeRequest(request), error));
  }
}

async function statusFailure(request: HttpRequest, response: Dispatcher.ResponseData): Promise<Error> {
  const { statusCode: status } = response;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > ERROR_BYTES_MAX) break;
  }
  const { data } = decodeBody(Buffer.concat(chunks), String(response.headers["content-type"] ?? ""));
  const what = describeRequest(request);
  if (status >= 400) return transferFailure({ status: "error", data: null, error: statusError(what, status, data) });
  return transferFailure(
    failed("client_error", `HTTP_${status}`, `${what} answered ${status}, a redirect that is not followed.`),
  );
}

/** The body as text, unpacked while it comes. Throws a `transferFailure` when it breaks off. */
async function* decoded(response: Dispatcher.ResponseData, what: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(charsetOf(String(response.headers["content-type"] ?? "")));
  const coding = String(response.headers["content-encoding"] ?? "identity")
    .trim()
    .toLowerCase();
  try {
    for await (const chunk of unpacked(response.body, coding, what) as AsyncIterable<Buffer>) {
      yield decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    if (error instanceof Error && Object.hasOwn(error, "result")) throw error;
    throw transferFailure(requestFailure(what, error));
  }
  yield decoder.decode();
}

function unpacked(body: Readable, coding: string, what: string): Readable {
  if (coding === "identity" || coding === "") return body;
  const unpack =
    coding === "br"
      ? zlib.createBrotliDecompress()
      : /^(x-)?gzip$|^deflate$/.test(coding)
        ? zlib.createUnzip()
        : undefined;
  if (unpack === undefined)
    throw configurationError(`${what}: the answer is packed with "${coding}"; gzip, deflate and br are supported.`);
  body.on("error", (error) => unpack.destroy(error));
  unpack.on("close", () => body.destroy());
  return body.pipe(unpack);
}

/** An unknown charset is read as UTF-8. */
function charsetOf(type: string): string {
  const charset = /charset\s*=\s*"?([\w.:-]+)/i.exec(type)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset).encoding;
  } catch {
    return "utf-8";
  }
}
