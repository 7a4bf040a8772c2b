import { readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

/*
 * `npm test`: runs every compiled test file, each in a process of its own, and fails when no test ran. (`node --test` on a
 * folder finds no test in some versions and exits 0.) Words on the command line choose files: `npm test -- engine python`.
 */

const root = import.meta.dirname;
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.js"))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.includes(word)))
  .sort()
  .map((name) => join(root, name));

let passed = 0;
let failed = 0;
// Two at a time: the tests start real databases, interpreters and servers, and the smallest machine has two cores.
const stream = run({ files, concurrency: 2, timeout: 600_000 });
stream.on("test:pass", (event) => {
  if (event.details.type !== "suite") passed += 1;
});
stream.on("test:fail", () => {
  failed += 1;
  process.exitCode = 1;
});
stream.on("end", () => {
  if (passed + failed > 0) return;
  process.stderr.write(`No test ran: ${files.length} files matched.\n`);
  process.exitCode = 1;
});
stream.pipe(new spec()).pipe(process.stdout);
