import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { postgresAccount } from "../../../src/platform/postgres/account.ts";
import { binariesIn, findPostgresBinaries } from "../../../src/platform/postgres/binaries.ts";
import { runProgram } from "../../../src/platform/system/run-program.ts";
import { findDebianProgram } from "../servers/debian-program.ts";
import { freePort } from "../servers/free-port.ts";
import { TEST_TLS_CERTIFICATE, TEST_TLS_KEY } from "../servers/tls.ts";

/** A PostgreSQL server of a test file, as people install it: with a unix socket, and TLS where it is asked for. */
export interface RealPostgres {
  port: number;
  /** Folder of its unix socket. */
  socketFolder: string;
  /** Of an empty database: `postgres://postgres:secret@127.0.0.1:port/flow`. */
  url: string;
  /** Files of the certificate (signed by itself, for localhost and 127.0.0.1) and its key, for clients. */
  certificate: string;
  key: string;
}

const stops: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const stop of stops) await stop();
});

/** Starts it; it ends with the test file. `tls`: `required` refuses who does not encrypt, `client` who shows no certificate. */
export async function startRealPostgres(
  version: 15 | 18,
  tls: "none" | "offered" | "required" | "client" = "none",
): Promise<RealPostgres> {
  const binaries = version === 18 ? await findPostgresBinaries() : binariesIn(await debianRoot());
  const account = await postgresAccount();
  const folder = await mkdtemp(join(tmpdir(), "flow-real-postgres-"));
  await chmod(folder, 0o755);
  const data = join(folder, "data");
  const secret = join(folder, "secret");
  const port = await freePort();
  await mkdir(data, { mode: 0o700 });
  await writeFile(secret, "secret");
  const certificate = join(folder, "server.crt");
  const key = join(data, "server.key");
  await writeFile(certificate, TEST_TLS_CERTIFICATE);
  await writeFile(key, TEST_TLS_KEY, { mode: 0o600 });
  const clientKey = join(folder, "client.key");
  await writeFile(clientKey, TEST_TLS_KEY, { mode: 0o600 });
  await rm(key);
  if (account !== undefined) await chown(data, account.uid, account.gid);
  const options = account === undefined ? {} : { account };
  const made = await runProgram(
    binaries.initdb,
    ["-D", data, "-U", "postgres", "--pwfile", secret, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "-N"],
    options,
  );
  if (made.code !== 0) throw new Error(`initdb of PostgreSQL ${version} failed: ${made.output}`);
  await writeFile(key, TEST_TLS_KEY, { mode: 0o600 });
  if (account !== undefined) await chown(key, account.uid, account.gid);
  const host = { none: "host", offered: "host", required: "hostssl", client: "hostssl" }[tls];
  const rule = tls === "client" ? "scram-sha-256 clientcert=verify-ca" : "scram-sha-256";
  await writeFile(join(data, "pg_hba.conf"), `local all all scram-sha-256\n${host} all all 127.0.0.1/32 ${rule}\n`);
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${data}`,
    "fsync=off",
    ...(tls === "none" ? [] : ["ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]),
    ...(tls === "client" ? [`ssl_ca_file=${certificate}`] : []),
  ];
  const pgCtl = (...args: string[]) => runProgram(binaries.pgCtl, ["-D", data, "-w", ...args], options);
  const started = await pgCtl(
    "start",
    "-l",
    join(data, "log"),
    "-o",
    settings.map((setting) => `-c ${setting}`).join(" "),
  );
  if (started.code !== 0) throw new Error(`PostgreSQL ${version} did not start: ${started.output}`);
  stops.push(async () => {
    await pgCtl("stop", "-m", "immediate");
    await rm(folder, { recursive: true, force: true });
  });
  const url = `postgres://postgres:secret@127.0.0.1:${port}/postgres`;
  return { port, socketFolder: data, url, certificate, key: clientKey };
}

async function debianRoot(): Promise<string> {
  const folders = ["usr/lib/postgresql/15/bin"];
  const { path } = await findDebianProgram({
    name: "pg_ctl",
    folders,
    packages: ["postgresql-15", "postgresql-client-15"],
  });
  return join(path, "..", "..");
}
