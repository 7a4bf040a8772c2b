import { randomBytes } from "node:crypto";
import { createSealer } from "../platform/crypto/sealing.ts";
import type { SealerSource } from "../ports/sealing.ts";

const KEY_BYTES = 32;

/** Sealing for the executions of one process: its key is drawn now and is gone with the process. */
export function createLocalSealing(): SealerSource {
  const sealer = createSealer([{ id: "local", key: randomBytes(KEY_BYTES) }]);
  return { sealerOf: () => Promise.resolve(sealer) };
}
