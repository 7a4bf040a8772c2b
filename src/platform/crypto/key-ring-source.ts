import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, readFile, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { createKeyRing, type KeyRing } from "./key-ring.ts";
import { parseKeys } from "./parse-keys.ts";
import type { Secret } from "./secret.ts";

/** Where the keys of a server come from. */
export interface KeyRingSource {
  /** `FLOW_ENCRYPTION_KEYS` and `FLOW_ENCRYPTION_KEYS_FILE`: at most one of them. */
  encryptionKeys: Secret | undefined;
  encryptionKeysFile: string | undefined;
  /** `FLOW_HOME` of a server with the embedded PostgreSQL: keys are made and kept there. Undefined: keys must be set. */
  keyFolder: string | undefined;
  /** Called with messages for the log, a line each. */
  log(line: string): void;
}

/** The key file of the embedded default, in `FLOW_HOME`. */
export const KEY_FILE = "encryption-keys";
const OWNER_ONLY = 0o600;
const WIDER = 0o077;

/**
 * The keys that a server encrypts with. Without a setting it creates keys only beside its own, embedded database; with an
 * external database it does not start without keys: its operator could read what is stored there in plain text, and a key
 * created here would be lost with the container. Throws `FlowError` INVALID_SETTING (no keys, both settings, invalid keys) and
 * FILE_UNREADABLE.
 */
export async function openKeyRing(source: KeyRingSource): Promise<KeyRing> {
  const { encryptionKeys, encryptionKeysFile: file, keyFolder } = source;
  if (encryptionKeys !== undefined && file !== undefined) {
    const why = "FLOW_ENCRYPTION_KEYS and FLOW_ENCRYPTION_KEYS_FILE are both set";
    throw new FlowError("INVALID_SETTING", `${why}: it is not clear which key encrypts. Take one of them away`);
  }
  if (encryptionKeys !== undefined) return createKeyRing(parseKeys(encryptionKeys.reveal(), "FLOW_ENCRYPTION_KEYS"));
  if (file !== undefined) {
    return createKeyRing(parseKeys(await read(file), `FLOW_ENCRYPTION_KEYS_FILE (${file})`));
  }
  if (keyFolder !== undefined) return createKeyRing(await ownKeys(keyFolder, source.log));
  const why = "A server with an external database needs a key to encrypt credentials, tokens and results there";
  const how = "Set FLOW_ENCRYPTION_KEYS=k1:$(openssl rand -base64 32), or FLOW_ENCRYPTION_KEYS_FILE, and keep it safe";
  throw new FlowError("INVALID_SETTING", `${why}. ${how}: what was encrypted is lost without it`);
}

async function ownKeys(folder: string, log: (line: string) => void) {
  const file = join(folder, KEY_FILE);
  if (await makeKeyFile(folder, file)) log(`a key for what is encrypted at rest was made: ${file}; keep a copy of it`);
  if (((await stat(file)).mode & WIDER) !== 0) {
    await chmod(file, OWNER_ONLY);
    log(`${file} could be read by others: now by its owner alone`);
  }
  return parseKeys(await read(file), file);
}

/** Makes the file if it is not there, complete or not at all: two servers that start at once take the same key. */
async function makeKeyFile(folder: string, file: string): Promise<boolean> {
  const isThere = await stat(file).then(
    () => true,
    () => false,
  );
  if (isThere) return false;
  await mkdir(folder, { recursive: true });
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  const handle = await open(draft, "wx", OWNER_ONLY);
  try {
    await handle.writeFile(`k1:${randomBytes(32).toString("base64")}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(draft);
  }
}

async function read(file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: unknown) => {
    throw new FlowError("FILE_UNREADABLE", `Cannot read the encryption keys in ${file}: ${messageOf(cause)}`, {
      cause,
    });
  });
}
