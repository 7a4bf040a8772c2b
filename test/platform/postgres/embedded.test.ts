import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { APPLICATION_NAME } from "../../../src/platform/postgres/application-name.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../src/platform/postgres/embedded.ts";
import { findPlace } from "../../../src/platform/postgres/place.ts";
import { isAlive } from "../../../src/platform/system/process.ts";
import { runProgram } from "../../../src/platform/system/run-program.ts";
import { openDatabase } from "../../../src/repositories/database/database.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

const NOBODY = 65_534;

/** Held so that they end although a test failed; by their own id. */
const servers: EmbeddedPostgres[] = [];
const folders: string[] = [];
after(async () => {
  for (const server of servers) await server.stop();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/** A folder that other users may enter: as root, the server runs as one. */
async function newHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), "flow-embedded-"));
  await chmod(home, 0o755);
  folders.push(home);
  return home;
}

let template: Promise<string> | undefined;

/** The folder of a server that was started once and stopped. Made once and copied: PostgreSQL takes a second to make its data. */
async function startedBefore(folder?: string): Promise<string> {
  template ??= makeTemplate();
  const copy = folder ?? join(await newHome(), "postgres");
  // It keeps the owner: as root, data belongs to another user.
  execFileSync("cp", ["-pR", await template, copy]);
  return copy;
}

async function makeTemplate(): Promise<string> {
  const folder = join(await newHome(), "postgres");
  await (await start(folder)).stop();
  // Each copy looks for a port of its own.
  for (const name of ["port", "server.log"]) await rm(join(folder, name), { force: true });
  return folder;
}

async function start(folder: string): Promise<EmbeddedPostgres & { lines: string[] }> {
  const lines: string[] = [];
  const server = await startEmbeddedPostgres({ folder, log: (line) => lines.push(line) });
  servers.push(server);
  return { ...server, lines };
}

/** One statement on a connection of its own. */
async function query(url: string, statement: string, options: postgres.Options<Record<string, never>> = {}) {
  const sql = postgres(url, { max: 1, onnotice: () => undefined, ...options });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end();
  }
}

async function postmasterPid(server: { data: string }): Promise<number> {
  return Number.parseInt(await readFile(join(server.data, "postmaster.pid"), "utf8"), 10);
}

/** Resolves when the process is gone. It is not a child of this process: no event reports its end, and its parent may take a moment to see it. */
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Another program on a folder. */
async function startProgram(folder: string, options: { uid?: number; gid?: number } = {}) {
  const program = fileURLToPath(new URL("../embedded-process.js", import.meta.url));
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [program, folder], {
    ...options,
    stdio: "pipe",
  });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const ended = once(child, "close");
  const line = await Promise.race([once(createInterface(child.stdout), "line"), ended.then(() => [])]);
  assert.equal(line.length, 1, stderr);
  const found = JSON.parse(line[0] as string) as { url: string; port: number; started: boolean; data: string };
  return { ...found, child, ended };
}

test("the first start makes a database, the next one finds its data on the same port", async () => {
  const folder = join(await newHome(), ".flow", "postgres");
  const first = await start(folder);
  assert.equal(first.started, true);
  assert.match(first.lines.join("\n"), /Making a PostgreSQL data folder in .*\.flow\/postgres\/data/);
  await query(first.url, "create table kept (value text)");
  await query(first.url, "insert into kept values ('größe')");
  const pid = await postmasterPid(first);
  await first.stop();
  await gone(pid);

  const second = await start(folder);
  assert.deepEqual([second.url, second.started, second.lines], [first.url, true, []]);
  assert.deepEqual(await query(second.url, "select value from kept"), [{ value: "größe" }]);
  await second.stop();
  await second.stop();
});

test("only the service's role gets in, with its password, and it is no superuser", async () => {
  const folder = await startedBefore();
  const { url, port } = await start(folder);
  const [role] = await query(
    url,
    "select rolsuper, rolcreaterole, current_database() as db from pg_roles where rolname = current_user",
  );
  assert.deepEqual(role, { rolsuper: false, rolcreaterole: false, db: "flow" });
  await assert.rejects(query(url.replace(/:[0-9a-f]+@/, ":wrong@"), "select"), { code: "28P01" });
  await assert.rejects(query(`postgres://postgres@127.0.0.1:${port}/postgres`, "select"), { code: "28000" });
  assert.equal((await stat(join(folder, "password"))).mode & 0o777, 0o600);
  const [settings] = await query(
    url,
    `select current_setting('listen_addresses') as listen, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as commit, current_setting('server_encoding') as encoding`,
  );
  assert.deepEqual(settings, { listen: "127.0.0.1", fsync: "on", commit: "on", encoding: "UTF8" });
});

/** Which way a connection came: undefined for a unix socket. */
async function peer(url: string): Promise<string | undefined> {
  const database = openDatabase(url, { connectionsMax: 1 });
  try {
    const [row] = await database.sql<{ peer: string | null }[]>`select host(inet_client_addr()) as peer`;
    return row?.peer ?? undefined;
  } finally {
    await database.close();
  }
}

/** The driver takes the file of a socket as a host. */
function bySocket(server: EmbeddedPostgres, user: string, password: string, database = "flow") {
  const path = join(server.data, `.s.PGSQL.${server.port}`);
  return query(`postgres://${user}:${password}@localhost/${database}`, "select current_user::text as name", { path });
}

function passwordOf({ url }: EmbeddedPostgres): string {
  return new URL(url).password;
}

test("a socket in the data folder lets in the service alone, with its password, and no other user of the machine", async () => {
  const home = join(await newHome(), "a folder");
  await mkdir(home);
  const folder = await startedBefore(join(home, "postgres"));
  const server = await start(folder);
  assert.deepEqual([await peer(server.socketUrl), await peer(server.url)], [undefined, "127.0.0.1"]);
  const { mode, uid } = await stat(join(server.data, `.s.PGSQL.${server.port}`));
  assert.deepEqual([mode & 0o777, uid], [0o700, (await stat(server.data)).uid]);
  assert.deepEqual(await bySocket(server, "flow", passwordOf(server)), [{ name: "flow" }]);
  await assert.rejects(bySocket(server, "flow", "wrong"), { code: "28P01" });
  await assert.rejects(bySocket(server, "postgres", "", "postgres"), { code: "28000" });
  await assert.rejects(bySocket(server, "flow_auth", server.authAccount?.password ?? ""), { code: "28000" });
});

test("where its path is too long for a socket or has a comma, the service goes by TCP", async () => {
  const home = await newHome();
  for (const name of ["x".repeat(104 - home.length), "one,two"]) {
    const server = await start(await startedBefore(join(home, name)));
    assert.equal(server.socketUrl, server.url);
    assert.equal(await peer(server.socketUrl), "127.0.0.1");
    await server.stop();
  }
});

test("the longest path that a socket may have, and one byte more", async () => {
  const home = await newHome();
  // Its port is the same the second time, and counts.
  const probe = await start(await startedBefore(join(home, "probe")));
  await probe.stop();
  const port = await readFile(join(home, "probe", "port"), "utf8");
  for (const [bytes, expected] of [
    [103, undefined],
    [104, "127.0.0.1"],
  ] as const) {
    const name = "x".repeat(bytes - `${home}//data/.s.PGSQL.${port}`.length);
    await startedBefore(join(home, name));
    await writeFile(join(home, name, "port"), port);
    const server = await start(join(home, name));
    assert.equal(server.port, Number(port));
    assert.equal(await peer(server.socketUrl), expected);
    await server.stop();
  }
});

test("a socket that is gone, or that a killed server left, is no obstacle", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await rm(join(first.data, `.s.PGSQL.${first.port}`));
  assert.equal(await peer(first.socketUrl), "127.0.0.1");
  const pid = await postmasterPid(first);
  process.kill(pid, "SIGKILL");
  await gone(pid);
  // As in a container that was started again: the process id belongs to another program.
  const left = join(first.data, `.s.PGSQL.${first.port}`);
  await writeFile(left, "");
  await writeFile(`${left}.lock`, `${process.pid}\n${first.data}\n1\n${first.port}\n.\n`);
  const second = await start(folder);
  assert.deepEqual([second.port, await peer(second.socketUrl)], [first.port, undefined]);
});

test("a cluster of a version without a socket lets the service in through it after the next start", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await first.stop();
  const access = join(first.data, "pg_hba.conf");
  const lines = await readFile(access, "utf8");
  await writeFile(access, lines.replace(/^local .*\n/gm, ""));
  assert.equal(await peer((await start(folder)).socketUrl), undefined);
  assert.deepEqual((await readFile(access, "utf8")).split("\n").sort(), lines.split("\n").sort());
});

/** The address for the account of logins. */
function authUrl({ authAccount, port }: EmbeddedPostgres, database = "flow"): string {
  assert.ok(authAccount, "there is no account of logins");
  return `postgres://${authAccount.user}:${authAccount.password}@127.0.0.1:${port}/${database}`;
}

/** Takes the account of logins away, as in a cluster of a version that had none. */
async function forgetAuthAccount(folder: string): Promise<void> {
  const place = await findPlace(folder, () => undefined);
  await rm(join(folder, "auth-password"));
  await writeFile(join(place.data, "pg_hba.conf"), "host all flow 127.0.0.1/32 scram-sha-256\n");
  const args = ["--single", "-D", place.data, "-c", "exit_on_error=true", "postgres"];
  const { code, output } = await runProgram(place.binaries.postgres, args, {
    account: place.account,
    input: "drop role flow_auth\n",
  });
  assert.equal(code, 0, output);
}

test("the account of logins gets in with its password, into the service's database alone, and may do nothing yet", async () => {
  const folder = await startedBefore();
  const server = await start(folder);
  await query(server.url, "create table secret as select 1 as value");
  const [role] = await query(
    authUrl(server),
    "select current_user::text as name, rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user",
  );
  assert.deepEqual(role, { name: "flow_auth", rolsuper: false, rolcreaterole: false, rolcreatedb: false });
  await assert.rejects(query(authUrl(server), "select from secret"), { code: "42501" });
  await assert.rejects(query(authUrl(server, "postgres"), "select"), { code: "28000" });
  await assert.rejects(query(authUrl(server).replace(/:[0-9a-f]+@/, ":wrong@"), "select"), { code: "28P01" });
  assert.equal((await stat(join(folder, "auth-password"))).mode & 0o777, 0o600);
});

test("a cluster that had no account of logins gets one with the next start, and keeps its data", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await query(first.url, "create table kept as select 1 as value");
  await first.stop();
  await forgetAuthAccount(folder);

  const second = await start(folder);
  assert.deepEqual(await query(authUrl(second), "select current_user::text as name"), [{ name: "flow_auth" }]);
  assert.deepEqual(await query(second.url, "select value from kept"), [{ value: 1 }]);
  assert.equal(second.url, first.url);
  await second.stop();
  const access = await readFile(join(second.data, "pg_hba.conf"), "utf8");
  const third = await start(folder);
  assert.deepEqual(third.authAccount, second.authAccount);
  assert.equal(await readFile(join(third.data, "pg_hba.conf"), "utf8"), access);
});

test("a server that an older version left running is restarted for the account, unless it is in use", async () => {
  const folder = await startedBefore();
  const left = await start(folder);
  await rm(join(folder, "auth-password"));
  const user = postgres(left.url, { max: 1, connection: { application_name: APPLICATION_NAME } });
  await user`select`;
  const beside = await start(folder);
  assert.deepEqual([beside.started, beside.authAccount], [false, undefined]);
  await user.end();

  const next = await start(folder);
  assert.equal(next.started, true);
  await query(authUrl(next), "select");
});

test("a role of that name which an administrator made keeps its password", async () => {
  const folder = await startedBefore();
  await forgetAuthAccount(folder);
  const place = await findPlace(folder, () => undefined);
  const { code, output } = await runProgram(place.binaries.postgres, ["--single", "-D", place.data, "postgres"], {
    account: place.account,
    input: "create role flow_auth login password 'mine'\n",
  });
  assert.equal(code, 0, output);
  const server = await start(folder);
  await query(`postgres://flow_auth:mine@127.0.0.1:${server.port}/flow`, "select");
  await assert.rejects(query(authUrl(server), "select"), { code: "28P01" });
});

test("a server that was killed leaves its files behind and starts again with what was committed", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await query(first.url, "create table kept as select 1 as value");
  const pid = await postmasterPid(first);
  process.kill(pid, "SIGKILL");
  await gone(pid);
  assert.equal(await postmasterPid(first), pid);

  const second = await start(folder);
  assert.equal(second.started, true);
  assert.deepEqual(await query(second.url, "select value from kept"), [{ value: 1 }]);
  await second.stop();
  // It was killed already: nothing to stop, and no error.
  await first.stop();
});

test("a file of a killed server that names what is another program now does not keep it from starting", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await first.stop();
  const file = join(first.data, "postmaster.pid");
  await writeFile(file, `${process.pid}\n${first.data}\n1\n${first.port}\n\n127.0.0.1\n0 0\nready   \n`);
  const second = await start(folder);
  assert.equal(second.started, true);
  assert.notEqual(await postmasterPid(second), process.pid);
});

test("two programs share a server: the first one out leaves it running, the last one stops it", async () => {
  const folder = join(await newHome(), "postgres");
  const [one, two] = await Promise.all([startProgram(folder), startProgram(folder)]);
  assert.equal(one.url, two.url);
  assert.deepEqual([one.started, two.started].sort(), [false, true]);
  const pid = await postmasterPid(one);

  one.child.stdin.end();
  await one.ended;
  assert.equal(isAlive(pid), true);
  await query(two.url, "select");

  two.child.stdin.end();
  await two.ended;
  await gone(pid);
});

test("a program that is killed leaves the server to the next one, which stops it in the end", async () => {
  const folder = await startedBefore();
  const killed = await startProgram(folder);
  await query(killed.url, "create table kept as select 1 as value");
  killed.child.kill("SIGKILL");
  await killed.ended;

  const next = await start(folder);
  assert.equal(next.started, false);
  assert.match(next.lines.join("\n"), /runs already in .*process \d+/);
  assert.deepEqual(await query(next.url, "select value from kept"), [{ value: 1 }]);
  const pid = await postmasterPid(next);
  await next.stop();
  await gone(pid);
});

test("the lock of a program that was killed while starting is taken over", async () => {
  const folder = await startedBefore();
  const child = spawn(process.execPath, ["-e", ""]);
  const { pid } = child;
  await once(child, "close");
  await writeFile(join(folder, "lock"), `${pid} 0123456789abcdef`);
  assert.equal((await start(folder)).started, true);
});

test("a port that is taken meanwhile is left to its owner", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await first.stop();
  const owner = createServer();
  await new Promise<void>((resolve) => owner.listen(first.port, "127.0.0.1", resolve));
  const second = await start(folder);
  assert.notEqual(second.port, first.port);
  await query(second.url, "select");
  await second.stop();
  await new Promise((resolve) => owner.close(resolve));
});

test("a first start that was interrupted is done again", async () => {
  const folder = join(await newHome(), "postgres");
  const draft = join(folder, "data.new");
  await mkdir(draft, { recursive: true });
  await writeFile(join(draft, "PG_VERSION"), "18");
  const server = await start(folder);
  assert.equal(server.started, true);
  await query(server.url, "select");
});

test("a password that was deleted is made again, without losing data", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await query(first.url, "create table kept as select 1 as value");
  await rm(join(folder, "password"));
  // While it runs, no connection can get in to change it.
  await assert.rejects(start(folder), refused("its password is lost", "Stop that server"));
  await first.stop();
  const second = await start(folder);
  assert.notEqual(second.url, first.url);
  assert.deepEqual(await query(second.url, "select value from kept"), [{ value: 1 }]);
  await assert.rejects(query(first.url, "select"), { code: "28P01" });
});

test("data of another version of PostgreSQL is refused in PostgreSQL's words, with what to do", async () => {
  const folder = await startedBefore();
  const first = await start(folder);
  await first.stop();
  await writeFile(join(first.data, "PG_VERSION"), "12\n");
  await assert.rejects(
    start(folder),
    refused("initialized by PostgreSQL version 12", "server.log", "FLOW_DATABASE_URL"),
  );
});

test("every user can run it: root's server runs as another user, other users' as themselves", async () => {
  const home = await newHome();
  const isRoot = process.getuid?.() === 0;
  // As root, this test also plays an ordinary user: the one that every system has.
  const account = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) await chown(home, NOBODY, NOBODY);
  const program = await startProgram(join(home, "postgres"), account);
  assert.equal((await stat(program.data)).uid, isRoot ? NOBODY : userInfo().uid);
  program.child.stdin.end();
  await program.ended;
  if (!isRoot) return;

  // As root made it: a copy keeps its owner.
  const server = await start(await startedBefore());
  assert.notEqual((await stat(server.data)).uid, 0);
});

test("for root in a folder that is closed to others, data and programs go where the server's user gets", async () => {
  if (process.getuid?.() !== 0) return;
  const [home, system] = [await newHome(), await newHome()];
  await chmod(home, 0o700);
  const lines: string[] = [];
  const place = await findPlace(join(home, "postgres"), (line) => lines.push(line), system);
  assert.ok(place.data.startsWith(`${system}/`), place.data);
  assert.match(lines.join("\n"), new RegExp(`may not enter ${home}/postgres: its data is in ${system}`));
  // The same folder leads to the same place.
  assert.deepEqual(await findPlace(join(home, "postgres"), () => undefined, system), place);
  const other = await findPlace(join(home, "other"), () => undefined, system);
  assert.notEqual(other.data, place.data);
  // Data stays where it is when the folder is opened.
  await mkdir(place.data);
  await chmod(home, 0o755);
  assert.equal((await findPlace(join(home, "postgres"), () => undefined, system)).data, place.data);
});

test("data that cannot be reached any more is no empty database", async () => {
  if (process.getuid?.() !== 0) return;
  const home = await newHome();
  await mkdir(join(home, "postgres", "data"), { recursive: true });
  await chmod(home, 0o700);
  await assert.rejects(start(join(home, "postgres")), refused(home, `chmod o+x ${home}`));
});

function refused(...parts: string[]) {
  return (error: unknown) => {
    assert.ok(error instanceof FlowError, String(error));
    assert.equal(error.code, "UNAVAILABLE");
    for (const part of parts) assert.ok(error.message.includes(part), `"${part}" is missing in: ${error.message}`);
    return true;
  };
}
