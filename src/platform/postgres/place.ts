import { createHash, randomBytes } from "node:crypto";
import { chmod, cp, mkdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { FlowError } from "../../schema/words/errors.ts";
import { exists } from "../system/exists.ts";
import type { Account } from "../system/run-program.ts";
import { closedFolder, postgresAccount } from "./account.ts";
import { binariesIn, findPostgresBinaries, type PostgresBinaries } from "./binaries.ts";

/** Where an embedded PostgreSQL lives, and as whom it runs. */
export interface PostgresPlace {
  /** The requested folder: password, port and lock are there. */
  folder: string;
  /** PostgreSQL's data folder; its log is in it. */
  data: string;
  binaries: PostgresBinaries;
  /** Set when this process is root. */
  account: Account | undefined;
}

/** Where root keeps what the system user cannot reach below a home folder that is closed to others. */
const SYSTEM_FOLDER = "/var/lib/flow";
/** Traversable but not listable: the server runs as another user than root. */
const PASS_ONLY = 0o711;
const OWNER_ONLY = 0o700;

/**
 * Makes the folder and finds out where the rest goes. That is the folder itself, except for root in a folder like `/root`, which
 * no other user may enter: then data and programs are below `systemFolder` (`/var/lib/flow`), and `log` gets a line.
 *
 * Throws `FlowError` UNAVAILABLE when there is data in the folder and the way to it was closed since.
 */
export async function findPlace(
  folder: string,
  log: (line: string) => void,
  systemFolder: string = SYSTEM_FOLDER,
): Promise<PostgresPlace> {
  const binaries = await findPostgresBinaries();
  const account = await postgresAccount();
  await mkdir(folder, { recursive: true });
  await chmod(folder, account === undefined ? OWNER_ONLY : PASS_ONLY);
  if (account === undefined) return { folder, data: join(folder, "data"), binaries, account };
  const data = await reachableData(folder, account, systemFolder);
  if (!data.startsWith(folder)) log(`PostgreSQL's user may not enter ${folder}: its data is in ${data}`);
  return { folder, data, binaries: await reachableBinaries(binaries, account, systemFolder), account };
}

/** Data that is there decides: a folder that was opened or closed since must not look like an empty database. */
async function reachableData(folder: string, account: Account, systemFolder: string): Promise<string> {
  const own = join(folder, "data");
  const base = join(systemFolder, createHash("sha256").update(folder).digest("hex").slice(0, 12));
  const elsewhere = join(base, "data");
  const hasOwn = await exists(own);
  const closed = await closedFolder(folder, account);
  if (closed === undefined && (hasOwn || !(await exists(elsewhere)))) return own;
  if (closed !== undefined && hasOwn) {
    const message = `PostgreSQL does not run as root, and its user may not enter ${closed} to reach its data in ${own}`;
    throw new FlowError("UNAVAILABLE", `${message}. Let it: chmod o+x ${closed}. Or start flow as another user`);
  }
  await makePassage(systemFolder);
  await makePassage(base);
  return elsewhere;
}

/** A copy of 60 MB, made once per version; it appears under its name when it is complete. */
async function reachableBinaries(
  binaries: PostgresBinaries,
  account: Account,
  systemFolder: string,
): Promise<PostgresBinaries> {
  if ((await closedFolder(binaries.root, account)) === undefined) return binaries;
  const description = await readFile(join(binaries.root, "..", "package.json"), "utf8");
  const { version } = JSON.parse(description) as { version: string };
  const target = join(systemFolder, `postgresql-${version}`);
  if (await exists(target)) return binariesIn(target);
  await makePassage(systemFolder);
  const draft = `${target}.${randomBytes(4).toString("hex")}`;
  await cp(binaries.root, draft, { recursive: true, verbatimSymlinks: true });
  // Another process may have been faster: its copy is as good.
  await rename(draft, target).catch(() => rm(draft, { recursive: true }));
  return binariesIn(target);
}

/** Explicitly: the process may have been started with a mask that closes what it makes. */
async function makePassage(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, PASS_ONLY);
}
