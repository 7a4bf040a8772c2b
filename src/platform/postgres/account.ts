import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { FlowError } from "../../schema/words/errors.ts";
import { type Account, runProgram } from "../system/run-program.ts";

const NAME = "postgres";

/**
 * The user that the embedded PostgreSQL runs as. It refuses to run as root, so root gets the system user `postgres`, created if
 * it is missing. Other users run it as themselves: undefined. Throws `FlowError` UNAVAILABLE if the user cannot be created.
 */
export async function postgresAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const known = await lookUp();
  if (known !== undefined) return known;
  const made = await runProgram("useradd", ["--system", "--user-group", "--no-create-home", "--home-dir", "/", NAME]);
  const account = await lookUp();
  if (account !== undefined) return account;
  const message = `PostgreSQL does not run as root, and the system user '${NAME}' could not be made: ${made.output}`;
  throw new FlowError(
    "UNAVAILABLE",
    `${message}. Start flow as another user, make '${NAME}', or set FLOW_DATABASE_URL`,
  );
}

async function lookUp(): Promise<Account | undefined> {
  const [user, group] = await Promise.all([runProgram("id", ["-u", NAME]), runProgram("id", ["-g", NAME])]);
  if (user.code !== 0 || group.code !== 0) return undefined;
  return { uid: Number(user.output), gid: Number(group.output) };
}

const OTHERS_ENTER = 0o001;
const GROUP_ENTERS = 0o010;
const OWNER_ENTERS = 0o100;

/** The folder on the way to `path`, itself included, that this user may not enter; undefined when the way is open. */
export async function closedFolder(path: string, { uid, gid }: Account): Promise<string | undefined> {
  const above = dirname(path);
  const closed = above === path ? undefined : await closedFolder(above, { uid, gid });
  if (closed !== undefined) return closed;
  const found = await stat(path);
  const bit = found.uid === uid ? OWNER_ENTERS : found.gid === gid ? GROUP_ENTERS : OTHERS_ENTER;
  return (found.mode & bit) === 0 ? path : undefined;
}
