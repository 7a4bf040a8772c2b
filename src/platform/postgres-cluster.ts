import { randomBytes } from "node:crypto";
import { chown, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FlowError } from "../schema/errors.ts";
import { exists } from "./exists.ts";
import type { PostgresPlace } from "./postgres-place.ts";
import { runProgram } from "./run-program.ts";

/** Role and database of the service. The role owns the database and is no superuser: SQL that it runs reaches no file. */
export const SERVICE_NAME = "flow";

/** Who may connect: the service's role, by password, from this machine. Nobody else, the superuser included. */
const HOST_ACCESS = `host all ${SERVICE_NAME} 127.0.0.1/32 scram-sha-256\n`;

/**
 * Makes the data folder with the service's role and database where there is none, and gives the role's password. The folder
 * is made beside its place and renamed when it is complete, so that a start which was interrupted is simply done again.
 *
 * The password is random, in a file that only its owner reads. A file that was deleted is made again with a new password.
 *
 * Throws `FlowError` UNAVAILABLE with PostgreSQL's own words.
 */
export async function ensureCluster(place: PostgresPlace, log: (line: string) => void): Promise<string> {
  const file = join(place.folder, "password");
  if (!(await exists(place.data))) {
    log(`Making a PostgreSQL data folder in ${place.data}`);
    const password = await writePassword(file);
    await createCluster(place, password);
    return password;
  }
  const password = await readFile(file, "utf8").catch(() => "");
  return password === "" ? await changePassword(place, file) : password;
}

/**
 * The password of a server that runs. Throws `FlowError` UNAVAILABLE when its file was deleted: making another one takes a
 * server that does not run.
 */
export async function readPassword(place: PostgresPlace): Promise<string> {
  const file = join(place.folder, "password");
  const password = await readFile(file, "utf8").catch(() => "");
  if (password !== "") return password;
  const message = `PostgreSQL runs in ${place.data} and its password is lost: ${file} cannot be read`;
  throw new FlowError("UNAVAILABLE", `${message}. Stop that server, then start flow again: it makes a new password`);
}

async function createCluster(place: PostgresPlace, password: string): Promise<void> {
  const { account, binaries } = place;
  const draft = `${place.data}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  if (account !== undefined) await chown(draft, account.uid, account.gid);
  // Names are ordered by bytes and letters are those of Unicode, whatever this machine's locale is. `trust` is initdb's
  // default and never used: no server runs before the file of who may connect is ours.
  const args = ["-D", draft, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"];
  const made = await runProgram(
    binaries.initdb,
    [...args, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
    place,
  );
  if (made.code !== 0) throw failed(`make a data folder in ${place.data}`, made.output);
  await writeFile(join(draft, "pg_hba.conf"), HOST_ACCESS);
  await runSingleUser(place, draft, [
    `create role ${SERVICE_NAME} login password '${password}'`,
    `create database ${SERVICE_NAME} owner ${SERVICE_NAME}`,
  ]);
  await rename(draft, place.data);
}

/** Only while no server runs in the folder. */
async function changePassword(place: PostgresPlace, file: string): Promise<string> {
  const password = await writePassword(file);
  await runSingleUser(place, place.data, [`alter role ${SERVICE_NAME} password '${password}'`]);
  return password;
}

/** Hexadecimal: it needs no quoting, neither in SQL nor in an address. */
async function writePassword(file: string): Promise<string> {
  const password = randomBytes(24).toString("hex");
  await rm(file, { force: true });
  await writeFile(file, password, { mode: 0o600, flag: "wx" });
  return password;
}

/** Statements as the superuser without a server: one per line, through standard input, where no list of processes shows them. */
async function runSingleUser(place: PostgresPlace, data: string, statements: readonly string[]): Promise<void> {
  const args = ["--single", "-D", data, "-c", "exit_on_error=true", "-c", "log_checkpoints=off", "postgres"];
  const input = `${statements.join("\n")}\n`;
  const { code, output } = await runProgram(place.binaries.postgres, args, { account: place.account, input });
  if (code !== 0) throw failed(`set up the database in ${data}`, output);
}

function failed(attempt: string, output: string): FlowError {
  const hint = "Delete the folder if its data may go, or set FLOW_DATABASE_URL to a PostgreSQL of yours";
  return new FlowError("UNAVAILABLE", `The embedded PostgreSQL could not ${attempt}: ${output}. ${hint}`);
}
