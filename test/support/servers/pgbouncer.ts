import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { postgresAccount } from "../../../src/platform/postgres/account.ts";
import { findDebianProgram } from "./debian-program.ts";
import { freePort } from "./free-port.ts";

/** How PgBouncer gives sessions of the database to its clients. */
export type PoolMode = "session" | "transaction";

const running = new Set<ChildProcess>();
const folders: string[] = [];
after(async () => {
  for (const child of running) {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/**
 * Debian's PgBouncer in front of a database, as it is installed: it refuses start-up parameters. Gives the address through it; it
 * ends with the test file.
 */
export async function startPgbouncer(databaseUrl: string, mode: PoolMode, poolSize = 5): Promise<string> {
  const { path, root } = await findDebianProgram({
    name: "pgbouncer",
    folders: ["usr/sbin"],
    packages: ["pgbouncer", "libc-ares2", "libevent-2.1-7"],
  });
  // It does not run as root, and its user may not enter root's folders.
  const account = await postgresAccount();
  const folder = await mkdtemp(join(tmpdir(), "flow-pgbouncer-"));
  folders.push(folder);
  await chmod(folder, 0o755);
  if (root !== "/") await cp(root, join(folder, "root"), { recursive: true, verbatimSymlinks: true });
  const binary = root === "/" ? path : path.replace(root, join(folder, "root"));
  const url = new URL(databaseUrl);
  const port = await freePort();
  const users = `"${url.username}" "${url.password}"\n`;
  await writeFile(join(folder, "users.txt"), users);
  const file = join(folder, "pgbouncer.ini");
  await writeFile(
    file,
    `[databases]
* = host=${url.hostname} port=${url.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users.txt")}
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 200
`,
  );
  const child = spawn(binary, [file], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, LD_LIBRARY_PATH: join(folder, "root/usr/lib", libraryFolder()) },
    ...(account !== undefined && { uid: account.uid, gid: account.gid }),
  });
  running.add(child);
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const lines = createInterface({ input: child.stderr });
    lines.on("line", (line) => {
      said.push(line);
      if (line.includes("process up")) resolve();
    });
    child.once("error", reject);
    child.once("exit", () => {
      running.delete(child);
      reject(new Error(`PgBouncer did not start:\n${said.join("\n")}`));
    });
  });
  url.port = String(port);
  return url.href;
}

function libraryFolder(): string {
  return process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
}
