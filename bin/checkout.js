// What `./flow` runs: the program out of a checkout, after what is missing or out of date has been installed and built. When
// all is current that costs some 10 ms: no process is started, and no file but the stamp is read.
import { fileURLToPath } from "node:url";
import { isCurrent } from "./parts.js";

const OLDEST = [20, 19];
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
  process.stderr.write(`flow needs Node ${OLDEST.join(".")} or later; this is ${process.versions.node}.\n`);
  process.exit(1);
}
// Only a service shows the page.
const wanted = process.argv[2] === "serve" ? ["packages", "program", "page"] : ["packages", "program"];
if (!isCurrent(wanted)) {
  const { setUp } = await import("./set-up.js");
  await setUp(wanted);
}
const entry = new URL("../dist/flow/main.js", import.meta.url);
// The program starts its worker with the file that it was started with: the worker of a service builds nothing.
process.argv[1] = fileURLToPath(entry);
await import(entry.href);
