import { randomBytes } from "node:crypto";
import { appendFile, chown, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FlowError } from "../../schema/words/errors.ts";
import { exists } from "../system/exists.ts";
import { runProgram } from "../system/run-program.ts";
import type { PostgresPlace } from "./place.ts";

/** Role and database of the service. The role owns the database and is no superuser: SQL that it runs reaches no file. */
export const SERVICE_NAME = "flow";

/** The second role: the playbooks of logins work with it. The service's own role grants it what it may do. */
export const AUTH_NAME = `${SERVICE_NAME}_auth`;

/** Comment on an account of a database that this program made for the playbooks of logins. */
export const AUTH_NOTE = "flow: logins and access control, schema auth alone";

/** Allowed connections: the two roles, by password, from this machine. No other role, not even the superuser. */
const SERVICE_ACCESS = `host all ${SERVICE_NAME} 127.0.0.1/32 scram-sha-256\n`;
/** Through the unix socket: the service alone. */
const SOCKET_ACCESS = `local all ${SERVICE_NAME} scram-sha-256\n`;
const AUTH_ACCESS = `host ${SERVICE_NAME} ${AUTH_NAME} 127.0.0.1/32 scram-sha-256\n`;

/** Passwords of the two roles. */
export interface ClusterPasswords {
  service: string;
  /** Undefined: the cluster is older than this role, or its password is lost, and the server would have to be stopped first. */
  auth: string | undefined;
}

/**
 * Creates the data folder with both roles and the service's database if it is missing, completes one of an older version, and
 * returns the roles' passwords. The folder is created beside its place and renamed when it is complete, so that an interrupted
 * start is simply repeated. A password is random, in a file that only its owner can read. A deleted file is written again with
 * a new password. Call it only while no server runs in the folder. Throws `FlowError` UNAVAILABLE with PostgreSQL's own
 * message.
 */
export async function ensureCluster(
  place: PostgresPlace,
  log: (line: string) => void,
): Promise<ClusterPasswords & { auth: string }> {
  if (!(await exists(place.data))) {
    log(`Making a PostgreSQL data folder in ${place.data}`);
    const passwords = { service: await writePassword(serviceFile(place)), auth: await writePassword(authFile(place)) };
    await createCluster(place, passwords);
    return passwords;
  }
  await allow(place, SOCKET_ACCESS);
  const [service, auth] = await Promise.all([kept(serviceFile(place)), kept(authFile(place))]);
  return {
    service: service ?? (await changePassword(place)),
    auth: auth ?? (await addAuthRole(place)),
  };
}

/**
 * The passwords of a running server. Throws `FlowError` UNAVAILABLE if the file of the service's password was deleted: a new
 * password needs a stopped server.
 */
export async function readPasswords(place: PostgresPlace): Promise<ClusterPasswords> {
  const service = await kept(serviceFile(place));
  if (service !== undefined) return { service, auth: await kept(authFile(place)) };
  const message = `PostgreSQL runs in ${place.data} and its password is lost: ${serviceFile(place)} cannot be read`;
  throw new FlowError("UNAVAILABLE", `${message}. Stop that server, then start flow again: it makes a new password`);
}

async function createCluster(place: PostgresPlace, passwords: ClusterPasswords & { auth: string }): Promise<void> {
  const { account, binaries } = place;
  const draft = `${place.data}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  if (account !== undefined) await chown(draft, account.uid, account.gid);
  // Names sort by bytes and letters are those of Unicode, whatever this machine's locale. `trust` is initdb's default and never
  // used: no server runs before flow's pg_hba.conf is in place.
  const args = ["-D", draft, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"];
  const made = await runProgram(
    binaries.initdb,
    [...args, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
    place,
  );
  if (made.code !== 0) throw failed(`make a data folder in ${place.data}`, made.output);
  await writeFile(join(draft, "pg_hba.conf"), SERVICE_ACCESS + SOCKET_ACCESS + AUTH_ACCESS);
  await runSingleUser(place, draft, [
    `create role ${SERVICE_NAME} login password '${passwords.service}'`,
    `create database ${SERVICE_NAME} owner ${SERVICE_NAME}`,
    authRole(passwords.auth),
  ]);
  await rename(draft, place.data);
}

/** Only while no server runs in the folder. */
async function changePassword(place: PostgresPlace): Promise<string> {
  const password = await writePassword(serviceFile(place));
  await runSingleUser(place, place.data, [`alter role ${SERVICE_NAME} password '${password}'`]);
  return password;
}

/** For a cluster that an older version made, or whose password was deleted. The password's file comes last: it says that all is done. */
async function addAuthRole(place: PostgresPlace): Promise<string> {
  await allow(place, AUTH_ACCESS);
  const password = newPassword();
  await runSingleUser(place, place.data, [authRole(password)]);
  return writePassword(authFile(place), password);
}

/** Adds a line to the allowed connections of an older version's cluster. It counts from the next start of the server on. */
async function allow({ data }: PostgresPlace, access: string): Promise<void> {
  const file = join(data, "pg_hba.conf");
  const lines = await readFile(file, "utf8");
  if (!lines.includes(access)) await appendFile(file, lines.endsWith("\n") ? access : `\n${access}`);
}

/** One line, because a line is a statement. A role of that name that an administrator made is left as it is. */
function authRole(password: string): string {
  const make = [
    `create role ${AUTH_NAME} login`,
    `comment on role ${AUTH_NAME} is '${AUTH_NOTE}'`,
    // A task that was lost must not hold a transaction open, which would keep vacuum from its work.
    `alter role ${AUTH_NAME} set idle_in_transaction_session_timeout = '30s'`,
  ];
  const found = `to_regrole('${AUTH_NAME}')`;
  const isOurs = `shobj_description(${found}, 'pg_authid') = '${AUTH_NOTE}'`;
  const lines = [
    `if ${found} is null then ${make.join("; ")}; end if`,
    `if ${isOurs} then alter role ${AUTH_NAME} password '${password}'; end if`,
  ];
  return `do $$ begin ${lines.join("; ")}; end $$`;
}

function serviceFile({ folder }: PostgresPlace): string {
  return join(folder, "password");
}

function authFile({ folder }: PostgresPlace): string {
  return join(folder, "auth-password");
}

async function kept(file: string): Promise<string | undefined> {
  const password = await readFile(file, "utf8").catch(() => "");
  return password === "" ? undefined : password;
}

/** Hexadecimal: it needs no quoting, neither in SQL nor in an address. */
function newPassword(): string {
  return randomBytes(24).toString("hex");
}

async function writePassword(file: string, password: string = newPassword()): Promise<string> {
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
