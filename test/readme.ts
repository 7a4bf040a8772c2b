import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/*
 * Runs every command that the README shows, as it stands there, and fails when one does not end with 0. `npm ci` is left
 * out: whoever runs this has just done it.
 */

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const commands = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
  .flatMap(([, block]) => (block ?? "").split("\n"))
  .map((line) => line.replace(/\s+#.*$/, "").trim())
  .filter((line) => line.startsWith("npx flow"));

if (commands.length === 0) {
  process.stderr.write("The README shows no command.\n");
  process.exitCode = 1;
}
for (const command of commands) {
  process.stdout.write(`$ ${command}\n`);
  const { status } = spawnSync(command, { cwd: root, shell: true, stdio: ["ignore", "inherit", "inherit"] });
  if (status === 0) continue;
  process.stderr.write(`It ended with ${status}.\n`);
  process.exitCode = 1;
}
