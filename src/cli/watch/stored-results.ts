import { createHash } from "node:crypto";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { StoredPayload } from "../../testing/recorded-run.ts";
import { openAnswer } from "../server/client.ts";
import type { ServerTarget } from "../server/target.ts";

/* The results of a server's run that are stored apart from its log, for the file of a recorded run. */

const REF = /^noetl:\/\/execution\//;

/** Adds the references in an event: of results, of the parts of loops and of manifests. */
export function collectRefs(value: unknown, refs: Set<string>): void {
  if (typeof value === "string") {
    if (REF.test(value)) refs.add(value);
  } else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) collectRefs(item, refs);
  }
}

/** A stored result; without its text where that is longer than `bytesMax`. Undefined if it is gone. */
export async function readStored(
  target: ServerTarget,
  ref: string,
  bytesMax: number,
  signal: AbortSignal,
): Promise<StoredPayload | undefined> {
  try {
    const { parts } = await openAnswer(target, RESULT_ROUTES.resolveApi, { query: { ref }, signal });
    const hash = createHash("sha256");
    const kept: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of parts) {
      hash.update(part);
      bytes += part.byteLength;
      if (bytes <= bytesMax) kept.push(part);
      else kept.length = 0;
    }
    const stored = { ref, bytes, sha256: hash.digest("hex") };
    return bytes > bytesMax ? stored : { ...stored, json: Buffer.concat(kept).toString("utf8") };
  } catch (error) {
    if (error instanceof FlowError && GONE.has(error.code)) return undefined;
    throw error;
  }
}

const GONE: ReadonlySet<string> = new Set(["NOT_FOUND", "REFERENCE_NOT_AVAILABLE"]);
