import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writingFile } from "../../platform/system/result-file.ts";
import type { PayloadBody, PayloadRange, PayloadStore } from "../../ports/payload-store.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";

const READ_BYTES = 262_144;
/** Only names that flow generates, so that no text of a row leads out of the folder. */
const NAME = /^[0-9a-z-]{2,80}$/i;

/** Payloads as files below `folder`, one each. Servers of one database share the folder: all of them mount it. */
export function createDiskPayloads(folder: string): PayloadStore {
  const pathOf = (location: JsonObject) => {
    const name = String(location["file"]);
    if (!NAME.test(name)) throw new FlowError("INTERNAL", "A result's file has a name that flow does not generate");
    return join(folder, name.slice(0, 2), `${name}.json`);
  };
  return {
    kind: "disk",
    locate: (_executionId, name) => ({ file: name }),
    async write(location, body, _about, signal) {
      const path = pathOf(location);
      await writingFile(() => mkdir(dirname(path), { recursive: true }));
      if (body.moveTo === undefined) await writeFile(path, body, signal);
      else await writingFile(() => body.moveTo?.(path) ?? Promise.resolve());
      // A name is on the disk when its folder is.
      await writingFile(() => synced(dirname(path)));
      return location;
    },
    async read(location, range) {
      const file = await open(pathOf(location), constants.O_RDONLY).catch(unlessMissing);
      if (file === undefined) return undefined;
      const { size } = await file.stat();
      return { bytes: size, body: partsOf(file, range ?? { start: 0, end: size }) };
    },
    remove: (location) => rm(pathOf(location), { force: true }),
  };
}

async function writeFile(path: string, body: PayloadBody, signal: AbortSignal): Promise<void> {
  const part = `${path}.part`;
  try {
    const file = await writingFile(() => open(part, "w", 0o600));
    try {
      for await (const bytes of body.read()) {
        signal.throwIfAborted();
        await writingFile(() => file.appendFile(bytes));
      }
      await writingFile(() => file.sync());
    } finally {
      await file.close();
    }
    await writingFile(() => rename(part, path));
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw error;
  }
}

async function* partsOf(file: FileHandle, { start, end }: PayloadRange): AsyncGenerator<Uint8Array> {
  try {
    for (let place = start; place < end; ) {
      const wanted = Math.min(READ_BYTES, end - place);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, place);
      if (bytesRead === 0) return;
      place += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function synced(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A file that cannot be opened for another reason exists: its permissions or the disk need attention. */
function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
  throw new FlowError("UNAVAILABLE", `A result's file cannot be read: ${messageOf(error)}`, { cause: error });
}
