import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ResultKeeping, WritableResultStore } from "../ports/result-store.ts";
import { lifetimeMs } from "../schema/rules/durations.ts";
import { FlowError, messageOf } from "../schema/words/errors.ts";
import type { Json } from "../schema/words/json.ts";
import { kvRowPlace } from "../schema/words/result.ts";

/** Payloads held in memory before the next ones go to disk. */
const MEMORY_BYTES_MAX = 16 * 1024 * 1024;
/** Largest payload that a server which has nothing but its database keeps there (`kv_max_bytes`: decisions, "Results"). */
const KV_BYTES_MAX = 1_048_576;

/** The result store of one process. */
export interface LocalResults extends WritableResultStore, Pick<ResultScopes, "began" | "stepEnded" | "ended"> {
  /** Forgets everything. */
  close(): Promise<void>;
}

/** A payload, in memory or in a file, and until when it may be read (milliseconds since 1970). */
interface Entry extends Body {
  sha256: string;
  expiresAt?: number;
}

/** A payload's text, in memory or in a file. */
interface Body {
  json?: string;
  file?: string;
}

/**
 * The result store of one process: the first payloads in memory, the others as files of a temporary folder that is made
 * when the first one needs it and removed by `close`, or when the process leaves without it. Its references say what a
 * server's would: the store that was asked for, else the one of that size. Saving throws `FlowError` NOT_STORED when there
 * is no room.
 *
 * @param now milliseconds since 1970.
 * @param saved called with each payload.
 */
export function createLocalResults(
  now: () => number = Date.now,
  saved?: (payload: SavedPayload) => void,
): LocalResults {
  const kept = new Map<string, Entry>();
  const bodies = createBodies();

  const forget = async (ref: string) => {
    const entry = kept.get(ref);
    kept.delete(ref);
    if (entry !== undefined) await bodies.remove(entry);
  };
  const scopes = createResultScopes(forget);

  return {
    kind: "disk",
    async save(ref, text, keeping = {}) {
      const json = typeof text === "string" ? text : Buffer.from(text.buffer, text.byteOffset, text.length).toString();
      const sha256 = createHash("sha256").update(text).digest("hex");
      const bytes = typeof text === "string" ? Buffer.byteLength(text) : text.byteLength;
      await forget(ref);
      const expiresAt = expiryOf(keeping, now);
      kept.set(ref, { sha256, ...(await bodies.write(json, bytes)), ...(expiresAt !== undefined && { expiresAt }) });
      scopes.saved(ref, keeping.scope);
      saved?.({ ref, json, bytes, sha256, ...(keeping.isFile === true && typeof text !== "string" && { file: text }) });
      const store = keeping.store ?? (bytes <= KV_BYTES_MAX ? "kv" : "disk");
      return {
        ...{ sha256, bytes, store },
        ...(store === "kv" && { meta: { ...kvRowPlace(ref) } }),
        ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
      };
    },
    async load(ref) {
      const entry = kept.get(ref);
      if (entry === undefined) throw notAvailable(ref, "it was never stored or has been deleted");
      if (entry.expiresAt !== undefined && entry.expiresAt <= now()) {
        await forget(ref);
        throw notAvailable(ref, "its time is over");
      }
      const json = entry.json ?? (await readText(ref, entry.file ?? ""));
      if (createHash("sha256").update(json).digest("hex") !== entry.sha256) {
        throw notAvailable(ref, "what is stored there is not what was written (sha256 differs)");
      }
      return JSON.parse(json) as Json;
    },
    began: scopes.began,
    stepEnded: scopes.stepEnded,
    ended: scopes.ended,
    async close() {
      kept.clear();
      await bodies.close();
    },
  };
}

/** A payload as it was saved: what is sealed in it is sealed. */
export interface SavedPayload {
  ref: string;
  json: string;
  bytes: number;
  sha256: string;
  /** The bytes of a file that a task has stored. */
  file?: Uint8Array;
}

/** The texts of payloads: the first in memory, the others in files of a temporary folder, made when the first one needs it. */
function createBodies() {
  let memoryBytes = 0;
  let folder: string | undefined;
  let files = 0;
  // The second Ctrl-C exits at once: `close` is not called then.
  const removeAtExit = () => {
    try {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    } catch {
      // A file was being written at that moment. The process is ending: ignore it.
    }
  };
  const newFile = () => {
    if (folder === undefined) {
      folder = mkdtempSync(join(tmpdir(), "flow-results-"));
      process.once("exit", removeAtExit);
    }
    files += 1;
    return join(folder, `${files}.json`);
  };
  const write = async (json: string, bytes: number): Promise<Body> => {
    if (memoryBytes + json.length <= MEMORY_BYTES_MAX) {
      memoryBytes += json.length;
      return { json };
    }
    try {
      const file = newFile();
      await writeFile(file, json);
      return { file };
    } catch (cause) {
      throw notStored(bytes, cause);
    }
  };

  return {
    write,
    async remove({ json, file }: Body): Promise<void> {
      memoryBytes -= json?.length ?? 0;
      // What cannot be removed now goes with the folder.
      if (file !== undefined) await rm(file, { force: true }).catch(() => undefined);
    },
    async close(): Promise<void> {
      memoryBytes = 0;
      process.off("exit", removeAtExit);
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
      folder = undefined;
    },
  };
}

/** Without a `ttl` a payload lives as long as its process. */
function expiryOf({ ttl }: ResultKeeping, now: () => number): number | undefined {
  const ttlMs = ttl === undefined ? undefined : lifetimeMs(ttl);
  return ttlMs === undefined ? undefined : now() + ttlMs;
}

async function readText(ref: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw notAvailable(ref, "its file cannot be read", cause);
  }
}

function notStored(bytes: number, cause: unknown): FlowError {
  const what = `Cannot store a result of ${bytes} bytes below ${tmpdir()}: ${messageOf(cause)}`;
  return new FlowError("NOT_STORED", `${what}. Make room there, or set TMPDIR to a folder that has it`, { cause });
}

function notAvailable(ref: string, why: string, cause?: unknown): FlowError {
  return new FlowError("REFERENCE_NOT_AVAILABLE", `The result ${ref} is not available: ${why}`, { cause });
}

/** Which payloads end with what (interface specification, Result references): a process's own, so in memory. */
interface ResultScopes {
  /** A payload was stored under this scope; without one, or as `permanent`, nothing here ends it. */
  saved(ref: string, scope: string | undefined): void;
  /** An execution begins, within the tree of `rootId`. */
  began(executionId: string, rootId: string): void;
  /** A step has ended, and with it what has the scope `step`. */
  stepEnded(executionId: string, step: string): Promise<void>;
  /**
   * An execution has ended, and with it what has the scope `execution`, but for the results of `resultStep`, which are the
   * execution's own; with the root also what has the scope `workflow`.
   */
  ended(executionId: string, resultStep: string | null): Promise<void>;
}

const PLACE = /^noetl:\/\/execution\/([^/]+)\/step\/([^/]+)\//;

/** Nothing stored yet. `forget` deletes a payload. */
function createResultScopes(forget: (ref: string) => Promise<void>): ResultScopes {
  /** References, by the scope that ends them. */
  const ending = new Map<string, Set<string>>();
  const roots = new Map<string, string>();
  const end = async (key: string, isKept: (ref: string) => boolean = () => false) => {
    const refs = ending.get(key) ?? [];
    ending.delete(key);
    for (const ref of refs) if (!isKept(ref)) await forget(ref);
  };
  return {
    saved(ref, scope) {
      const [, executionId, step] = PLACE.exec(ref) ?? [];
      if (executionId === undefined || step === undefined) return;
      const key = keyOf(scope, executionId, step, roots.get(executionId) ?? executionId);
      if (key === undefined) return;
      const refs = ending.get(key) ?? new Set();
      ending.set(key, refs.add(ref));
    },
    began: (executionId, rootId) => void roots.set(executionId, rootId),
    stepEnded: (executionId, step) => end(`step ${executionId} ${encodeURIComponent(step)}`),
    async ended(executionId, resultStep) {
      const own = resultStep === null ? "" : `/step/${encodeURIComponent(resultStep)}/`;
      await end(`execution ${executionId}`, (ref) => own !== "" && ref.includes(own));
      if (roots.get(executionId) === executionId) await end(`workflow ${executionId}`);
      roots.delete(executionId);
    },
  };
}

function keyOf(scope: string | undefined, executionId: string, step: string, rootId: string): string | undefined {
  if (scope === "step") return `step ${executionId} ${step}`;
  if (scope === "execution") return `execution ${executionId}`;
  return scope === "workflow" ? `workflow ${rootId}` : undefined;
}
