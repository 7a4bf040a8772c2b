import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { findDebianProgram } from "./debian-program.ts";

/** How a {@link TestNats} is to be. */
export interface TestNatsOptions {
  /** Who may connect. Default: anyone. */
  user?: string;
  password?: string;
  /** Default true. */
  jetStream?: boolean;
  /** Largest message in bytes. Default: that of NATS, 1 MiB. */
  maxPayload?: number;
  /** Instead of the above: what a file in `deploy/` says, with its folder of data and its port of HTTP replaced. */
  configuration?: string;
  /** Its environment; default: that of this process. */
  environment?: NodeJS.ProcessEnv;
  /** Default true; false makes an address where nothing listens until `start`. */
  started?: boolean;
}

/** A real nats-server on a port of its own, which it keeps when it is started again. */
export interface TestNats {
  /** `nats://user:password@127.0.0.1:port`. */
  readonly url: string;
  readonly port: number;
  /** Starts it and waits until it takes connections. */
  start(): Promise<void>;
  /** Kills it and waits until it is gone. What it stored stays. */
  stop(): Promise<void>;
  /** It no longer reads or writes, and its connections stay open. */
  freeze(): void;
  thaw(): void;
  /** Deletes all that it stored. Call it while it is stopped. */
  wipe(): Promise<void>;
}

const running = new Set<ChildProcess>();
const folders: string[] = [];
after(async () => {
  await Promise.all([...running].map(kill));
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/** A server for this test file; it ends with it. Fails where there is no nats-server and none can be unpacked. */
export async function startTestNats(options: TestNatsOptions = {}): Promise<TestNats> {
  const binary = await findNatsServer();
  const folder = await mkdtemp(join(tmpdir(), "flow-nats-"));
  folders.push(folder);
  let child: ChildProcess | undefined;
  // -1 lets the server choose a free port, which it keeps from then on.
  let port = -1;
  const start = async () => {
    await writeFile(join(folder, "nats.conf"), configuration(options, folder, port));
    const started = await launch(binary, join(folder, "nats.conf"), options.environment);
    child = started.child;
    port = started.port;
  };
  const stop = async () => {
    if (child !== undefined) await kill(child);
  };
  await start();
  if (options.started === false) await stop();
  const { user, password } = options;
  const identity = user === undefined ? "" : `${user}:${password ?? ""}@`;
  return {
    url: `nats://${identity}127.0.0.1:${port}`,
    port,
    start,
    stop,
    freeze() {
      child?.kill("SIGSTOP");
      untilStopped(child?.pid);
    },
    thaw: () => child?.kill("SIGCONT"),
    wipe: () => rm(join(folder, "store"), { recursive: true, force: true }),
  };
}

function configuration(options: TestNatsOptions, folder: string, port: number): string {
  const { user, password, jetStream = true, maxPayload } = options;
  const store = JSON.stringify(join(folder, "store"));
  const listen = `listen: "127.0.0.1:${port}"`;
  if (options.configuration !== undefined) {
    return `${listen}\n${options.configuration.replace("/data", store).replace("8222", "-1")}`;
  }
  return [
    listen,
    jetStream ? `jetstream { store_dir: ${store} }` : "",
    maxPayload === undefined ? "" : `max_payload: ${maxPayload}`,
    user === undefined ? "" : `authorization { user: ${JSON.stringify(user)}, password: ${JSON.stringify(password)} }`,
  ].join("\n");
}

async function launch(
  binary: string,
  file: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(binary, ["-c", file], { stdio: ["ignore", "ignore", "pipe"], env });
  running.add(child);
  const said: string[] = [];
  return new Promise((resolve, reject) => {
    let port = 0;
    const lines = createInterface({ input: child.stderr });
    // All of it is read: the server would block on a full pipe.
    lines.on("line", (line) => {
      said.push(line);
      port ||= Number(/Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? 0);
      if (port !== 0 && line.includes("Server is ready")) resolve({ child, port });
    });
    child.once("error", reject);
    lines.once("close", () => reject(new Error(`nats-server did not start:\n${said.join("\n")}`)));
  });
}

async function kill(child: ChildProcess): Promise<void> {
  running.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

async function findNatsServer(): Promise<string> {
  const folders = ["usr/sbin", "usr/bin"];
  return (await findDebianProgram({ name: "nats-server", folders, packages: ["nats-server"] })).path;
}

/** The longest that a stopped process takes to stand still, milliseconds. */
const STOPPING_MS = 2_000;

/** Waits until no thread of a process runs, where the system tells: one that is stopped may answer once more on the other processor. */
function untilStopped(pid: number | undefined): void {
  const folder = `/proc/${pid}/task`;
  const end = Date.now() + STOPPING_MS;
  const isStopped = (thread: string) => /\) [Tt] /.test(readFileSync(`${folder}/${thread}/stat`, "utf8"));
  while (existsSync(folder) && Date.now() < end && !readdirSync(folder).every(isStopped));
}
