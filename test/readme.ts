import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/*
 * Runs every command that the README shows, as it stands there, and fails when one does not end with 0. `npm test` is
 * left out: the check that runs this has just run it. A command with `&` is a service: what follows waits until it says that it is
 * ready, and it is stopped at the end.
 */

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const commands = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
  .flatMap(([, block]) => (block ?? "").split("\n"))
  .map((line) => line.replace(/\s+#.*$/, "").trim())
  .filter((line) => line.startsWith("./flow"));

const complain = (text: string) => {
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
};

async function startService(command: string): Promise<ChildProcess> {
  // A group of its own: what npx starts is stopped with it.
  const service = spawn(command, { cwd: root, shell: true, detached: true, stdio: ["ignore", "pipe", "inherit"] });
  let isReady = false;
  await new Promise<void>((resolve) => {
    service.stdout.on("data", (text) => {
      process.stdout.write(String(text));
      isReady ||= String(text).includes("ready");
      if (isReady) resolve();
    });
    service.once("exit", () => {
      if (!isReady) complain("It ended before it was ready.");
      resolve();
    });
  });
  return service;
}

if (commands.length === 0) complain("The README shows no command.");
const services: ChildProcess[] = [];
for (const command of commands) {
  process.stdout.write(`$ ${command}\n`);
  if (command.endsWith("&")) {
    services.push(await startService(command.slice(0, -1)));
    continue;
  }
  const { status } = spawnSync(command, { cwd: root, shell: true, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) complain(`It ended with ${status}.`);
}
for (const service of services) {
  if (service.exitCode !== null || service.pid === undefined) continue;
  const ended = once(service, "exit");
  process.kill(-service.pid, "SIGTERM");
  await ended;
}
