import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findDebianProgram } from "../../test/support/servers/debian-program.ts";
import { startChild } from "./child.ts";

/** A broker for several servers. */
export interface BenchNats {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** Starts nats-server on a free port. Throws where this machine has none and none can be unpacked. */
export async function startBenchNats(): Promise<BenchNats> {
  const folders = ["usr/sbin", "usr/bin"];
  const { path } = await findDebianProgram({ name: "nats-server", folders, packages: ["nats-server"] });
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-nats-"));
  const file = join(folder, "nats.conf");
  const store = JSON.stringify(join(folder, "store"));
  await writeFile(file, `listen: "127.0.0.1:-1"\njetstream { store_dir: ${store} }\n`);
  const child = startChild(path, ["-c", file]);
  let output = "";
  const listening = new Promise<string>((resolve) => {
    child.process.stderr?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const address = /Listening for client connections on (127\.0\.0\.1:\d+)/.exec(output)?.[1];
      if (address !== undefined && output.includes("Server is ready")) resolve(address);
    });
  });
  const address = await child.before("is not ready", listening);
  const stop = async () => {
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { url: `nats://${address}`, pid: child.process.pid ?? 0, stop };
}
