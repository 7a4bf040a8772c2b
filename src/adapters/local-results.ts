import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WritableResultStore } from "../ports/result-store.ts";
import { FlowError, messageOf } from "../schema/errors.ts";
import type { Json } from "../schema/json.ts";

/** Payloads held in memory before the next ones go to disk. */
const MEMORY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * The result store of one process: the first payloads in memory, the others as files of a temporary folder that is made
 * when the first one needs it and removed by `close`, or when the process leaves without it. Saving throws `FlowError`
 * NOT_STORED when there is no room.
 */
export function createLocalResults(): WritableResultStore & { close(): Promise<void> } {
  const kept = new Map<string, { sha256: string; json?: string; file?: string }>();
  let memoryBytes = 0;
  let folder: string | undefined;

  const forget = (ref: string) => {
    memoryBytes -= kept.get(ref)?.json?.length ?? 0;
    kept.delete(ref);
  };

  // The second Ctrl-C leaves at once: nobody calls `close` then.
  const removeAtExit = () => {
    try {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    } catch {
      // A file was being written at that moment. There is nobody left to tell.
    }
  };
  const folderOfFiles = () => {
    if (folder === undefined) {
      folder = mkdtempSync(join(tmpdir(), "flow-results-"));
      process.once("exit", removeAtExit);
    }
    return folder;
  };

  return {
    kind: "disk",
    async save(ref, json) {
      const sha256 = createHash("sha256").update(json).digest("hex");
      const bytes = Buffer.byteLength(json);
      forget(ref);
      if (memoryBytes + json.length <= MEMORY_BYTES_MAX) {
        memoryBytes += json.length;
        kept.set(ref, { sha256, json });
      } else {
        try {
          const file = join(folderOfFiles(), `${sha256}.json`);
          await writeFile(file, json);
          kept.set(ref, { sha256, file });
        } catch (cause) {
          throw notStored(bytes, cause);
        }
      }
      return { sha256, bytes };
    },
    async load(ref) {
      const entry = kept.get(ref);
      if (entry === undefined) throw notAvailable(ref, "it was never stored or has been deleted");
      const json = entry.json ?? (await readText(ref, entry.file ?? ""));
      if (createHash("sha256").update(json).digest("hex") !== entry.sha256) {
        throw notAvailable(ref, "what is stored there is not what was written (sha256 differs)");
      }
      return JSON.parse(json) as Json;
    },
    async close() {
      kept.clear();
      memoryBytes = 0;
      process.off("exit", removeAtExit);
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
      folder = undefined;
    },
  };
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
