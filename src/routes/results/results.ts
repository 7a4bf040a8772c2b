import type { Context } from "hono";
import type * as v from "valibot";
import { ARTIFACTS_MAX, type ArtifactItem, type ResolveQuery } from "../../schema/api/results.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { notOfClaim } from "../../schema/rules/claim-refusals.ts";
import { lifetimeMs } from "../../schema/rules/durations.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { placeOfArtifact } from "../../schema/words/result.ts";
import type { Sealing } from "../../services/credentials/sealing.ts";
import type { checkReading } from "../../services/executions/check-read-access.ts";
import type { Executions } from "../../services/executions/executions.ts";
import type { Results } from "../../services/results/results.ts";
import { isKnown, requestedRange } from "../http/byte-range.ts";
import { claimedExecution } from "../http/claimed-execution.ts";
import { limitedBody } from "../http/read-body.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";
import { invalid, pathId } from "../http/validate.ts";
import { shownResult } from "./result-headers.ts";

type CheckReading = ReturnType<typeof checkReading>;
type ArtifactRow = Awaited<ReturnType<Results["artifacts"]>>[number];

/** Stored results (interface specification, Results and lifecycle). `bytesMax` bounds what is kept. */
export function resultRoutes(
  results: Pick<Results, "upload" | "read" | "artifacts">,
  sealing: Pick<Sealing, "openResult">,
  bytesMax: number,
  check: CheckReading,
  reusedSteps: Executions["reusedSteps"],
) {
  const read = async (c: Context<RouteEnvironment>, query: v.InferOutput<typeof ResolveQuery>) => {
    // A user reads in their own name, which was decided on before.
    const reader = c.var.role === "user" ? undefined : claimedExecution(c, query.execution_id);
    if (reader !== undefined) await check(reader, query.ref);
    return await resolve(c, results, sealing, query);
  };
  return serve(RESULT_ROUTES, {
    save: {
      readsBody: async (
        { query: { ref, worker, command_id, attempt, scope, ttl, store, compression, content_type }, json },
        c,
      ) => {
        const { claim } = c.var;
        if (claim !== undefined && (claim.commandId !== command_id || claim.attempt !== Number(attempt))) {
          throw notOfClaim(claim, `the claim of attempt ${attempt} of command ${command_id}`);
        }
        const ttlMs = ttl === undefined ? undefined : lifetimeMs(ttl);
        if (ttl !== undefined && ttlMs === undefined) {
          throw invalid("The query", [{ path: "ttl", message: "must be a time such as 90s, 15m, 1h or 30d" }]);
        }
        const saved = await results.upload({
          ref,
          claim: { worker, commandId: command_id, attempt: Number(attempt) },
          body: limitedBody(c.req.raw, bytesMax),
          ...defined({ scope, ttlMs, store, compression, contentType: content_type }),
        });
        return json({
          status: "ok",
          ref,
          store: saved.store,
          bytes: saved.bytes,
          sha256: saved.sha256,
          content_type: saved.contentType,
          compression: saved.compression,
          expires_at: saved.expiresAt.toISOString(),
          meta: saved.meta,
        });
      },
    },
    artifacts: async ({ params, json }) => {
      const id = pathId(params.execution_id, "execution");
      const own = (await results.artifacts(id, ARTIFACTS_MAX + 1)).flatMap((row) => artifactItem(row));
      const files = [...(await reusedFiles(results, await reusedSteps(id))), ...own];
      return json({ artifacts: files.slice(0, ARTIFACTS_MAX), truncated: files.length > ARTIFACTS_MAX });
    },
    resolve: ({ query }, c) => read(c, query),
    resolveApi: ({ query }, c) => read(c, query),
  });
}

function artifactItem({ ref, contentType, bytes, sha256, createdAt }: ArtifactRow): ArtifactItem[] {
  const place = placeOfArtifact(ref);
  if (place === undefined) return [];
  const { name, step, task } = place;
  return [{ name, step, task, ref, content_type: contentType, bytes, sha256, created_at: createdAt.toISOString() }];
}

/** What steps that were taken over had stored where they ran, as far as that is kept: they came before what this execution has stored. */
async function reusedFiles(
  results: Pick<Results, "artifacts">,
  reused: ReadonlyMap<string, string>,
): Promise<ArtifactItem[]> {
  const files: ArtifactItem[] = [];
  for (const original of new Set(reused.values())) {
    if (files.length > ARTIFACTS_MAX) break;
    const rows = await results.artifacts(original, ARTIFACTS_MAX + 1).catch(noneOfDeleted);
    for (const item of rows.flatMap((row) => artifactItem(row)))
      if (reused.get(item.step) === original) files.push({ ...item, reused_from: original });
  }
  return files;
}

function noneOfDeleted(error: unknown): ArtifactRow[] {
  if (error instanceof FlowError && error.code === "NOT_FOUND") return [];
  throw error;
}

/**
 * The bytes as they were stored: they are neither parsed nor serialised again. Their type was
 * chosen by the caller who stored them, so a browser must save them as a file and not interpret them.
 */
async function resolve(
  c: Context<RouteEnvironment>,
  results: Pick<Results, "read">,
  sealing: Pick<Sealing, "openResult">,
  { ref, sealed, frame }: v.InferOutput<typeof ResolveQuery>,
): Promise<Response> {
  const found = await results.read(ref);
  if (frame !== undefined && (placeOfArtifact(ref) === undefined || !/^text\/html *(;|$)/i.test(found.contentType))) {
    throw invalid("The query", [{ path: "frame", message: "is for files of the type text/html" }]);
  }
  const { bytes, sha256, contentType } = found;
  if (found.isSealed && (sealed !== "true" || c.var.role === "user")) {
    describe(c, ref, contentType);
    if (c.req.raw.method === "HEAD") return c.body(null, 200);
    return c.body(streamOf(await shownResult(c, found, ref, sealing, RESULT_ROUTES.resolve)), 200);
  }
  const etag = `"${sha256}"`;
  if (isKnown(c.req.header("if-none-match"), etag)) return c.body(null, 304, { etag });
  const range = requestedRange(c.req.header("range"), c.req.header("if-range"), { bytes, etag });
  if (range === "none") {
    c.header("content-range", `bytes */${bytes}`);
    const message = `The result is ${bytes.toLocaleString("en")} bytes long; the part that was asked for is beyond its end`;
    throw new FlowError("RANGE_NOT_SATISFIABLE", message);
  }
  const { start, end } = range === "all" ? { start: 0, end: bytes } : range;
  // A HEAD request opens nothing. If opening fails, no header about a body has been sent yet.
  const isHead = c.req.raw.method === "HEAD";
  const parts = isHead ? undefined : await found.open(range === "all" ? undefined : range);
  if (range !== "all") c.header("content-range", `bytes ${start}-${end - 1}/${bytes}`);
  c.header("etag", etag);
  c.header("accept-ranges", "bytes");
  c.header("content-length", String(end - start));
  describe(c, ref, contentType);
  if (frame !== undefined) {
    c.header("content-disposition", "inline");
    c.header("content-security-policy", FRAME_POLICY);
  }
  const status = range === "all" ? 200 : 206;
  return parts === undefined ? c.body(null, status) : c.body(streamOf(parts), status);
}

/**
 * What HTML of a task may do in a frame: look as its author made it, by what stands in it. It has an origin of its own, which may do nothing here;
 * no script, no form, nothing from elsewhere or to there, and no frame but those of the page.
 */
const FRAME_POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/** Headers that do not depend on the reader. */
function describe(c: Context, ref: string, contentType: string): void {
  c.header("content-type", contentType);
  c.header("content-disposition", `attachment; filename="${fileNameOf(ref, contentType)}"`);
  c.header("content-security-policy", "sandbox; default-src 'none'");
}

/** Parts are read as fast as the client takes them; a disconnect ends the reading. */
function streamOf(parts: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

const NAME_MAX = 80;

/** A name for the file of a payload: its step and task, of letters that mean nothing to any system. */
function fileNameOf(ref: string, contentType: string): string {
  const file = placeOfArtifact(ref)?.name;
  if (file !== undefined) return file.replaceAll(/[^\w .-]+/g, "_").slice(-NAME_MAX);
  const [, step = "result", task = ""] = /\/step\/([^/]+)\/task\/([^/]+)\//.exec(ref) ?? [];
  const name = `${step}-${task}`.replace(/[^\w-]+/g, "_").replace(/^[-_]+|[-_]+$/g, "");
  const extension = /[/+]json *(;|$)/.test(contentType) ? "json" : "bin";
  return `${name.slice(0, NAME_MAX) || "result"}.${extension}`;
}
