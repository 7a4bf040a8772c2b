import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** One file of `migrations/`. */
export interface Migration {
  /** File name without its ending; names sort in the order of application. */
  name: string;
  /** SQL: any number of statements. */
  text: string;
  /** Of the text with plain line ends, in hex: a checkout that writes its own line ends is no edit. */
  sha256: string;
}

const FILE = /^(\d{4}_[a-z0-9_]+)\.sql$/;

/** All migrations of a folder in order. Throws `FlowError` FILE_UNREADABLE when it cannot be read or has none. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  try {
    const names = (await readdir(folder)).map((file) => FILE.exec(file)?.[1]).filter((name) => name !== undefined);
    if (names.length === 0) throw new Error("there is no migration in it");
    return await Promise.all(names.sort().map((name) => readMigration(folder, name)));
  } catch (cause) {
    const message = `Cannot read the database migrations in ${folder}: ${messageOf(cause)}`;
    const hint = "The installation is incomplete; install the package again";
    throw new FlowError("FILE_UNREADABLE", `${message}. ${hint}`, { cause });
  }
}

async function readMigration(folder: string, name: string): Promise<Migration> {
  const text = (await readFile(join(folder, `${name}.sql`), "utf8")).replaceAll("\r\n", "\n");
  return { name, text, sha256: createHash("sha256").update(text).digest("hex") };
}
