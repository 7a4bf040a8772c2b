import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { summarizeProfiles } from "./candidates/profile.ts";
import { benchExpressions } from "./expressions.ts";
import { benchGateway } from "./gateway.ts";
import { benchLargeLog } from "./large-log.ts";
import { benchLoop } from "./loop.ts";
import { benchPython } from "./python.ts";
import type { Measurement } from "./report/measurement.ts";
import { tableOf } from "./report/table.ts";
import { FULL, QUICK } from "./service/scale.ts";
import { benchService, SERVICE_IDS } from "./service/service-bench.ts";
import { benchStartup } from "./startup.ts";

/*
 * `npm run bench`: every figure beside its target and its peers', as a table and as a file in bench/results/. Figures move
 * with the machine: compare them with the others of the same run. No test depends on them.
 *
 *   npm run bench -- B1 B3 startup    these parts alone
 *   npm run bench -- --quick          fewer of everything: two minutes
 *   npm run bench -- --no-peers       without DBOS and Restate
 *   npm run bench -- --profile B1     where the time of server and worker goes
 */

/** Parts that need no service, and the ids of their measurements. */
const PARTS: readonly { name: string; id?: string; run(): Measurement[] | Promise<Measurement[]> }[] = [
  { name: "expressions", id: "B7", run: benchExpressions },
  { name: "startup", id: "B8", run: benchStartup },
  { name: "loop", id: "B4", run: benchLoop },
  { name: "python", run: benchPython },
  { name: "gateway", id: "B10", run: benchGateway },
  { name: "large-log", run: () => benchLargeLog() },
];

const { values: options, positionals } = parseArgs({
  options: { quick: { type: "boolean" }, "no-peers": { type: "boolean" }, profile: { type: "boolean" } },
  allowPositionals: true,
});
const wanted = wantedParts(positionals);
const log = (line: string) => process.stderr.write(`${line}\n`);
const all: Measurement[] = [];
const [load = 0] = loadavg();
const machine = { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, load };
if (load > machine.cores / 2) log(`The machine is busy already, load ${load.toFixed(1)}: figures will be poor`);

for (const { name, id, run } of PARTS) {
  if (!wanted.includes(name) && !(id !== undefined && wanted.includes(id))) continue;
  log(`${name} …`);
  all.push(...(await run()));
}
const stamp = new Date().toISOString();
const results = join(import.meta.dirname, "../../bench/results");
mkdirSync(results, { recursive: true });
const output = join(results, stamp.replace(/[:.]/g, "-"));
const ids = SERVICE_IDS.filter((id) => wanted.includes(id));
if (ids.length > 0) {
  const scale = options.quick ? QUICK : FULL;
  const profiles = options.profile ? { profiles: output } : {};
  all.push(...(await benchService({ ids, peers: !options["no-peers"], scale, ...profiles, log })));
  if (options.profile) log(await summarizeProfiles(output));
}

process.stdout.write(tableOf(all));
const run = { stamp, quick: options.quick ?? false, machine, measurements: all };
writeFileSync(`${output}.json`, `${JSON.stringify(run, null, 2)}\n`);

/** What the words choose, everything without words. A word that chooses nothing is a mistake, said before it costs minutes. */
function wantedParts(words: readonly string[]): readonly string[] {
  const known = [...new Set([...SERVICE_IDS, ...PARTS.flatMap(({ name, id }) => (id ? [name, id] : [name]))])];
  const unknown = words.filter((word) => !known.includes(word));
  if (unknown.length === 0) return words.length > 0 ? words : known;
  process.stderr.write(`Unknown: ${unknown.join(", ")}. There are ${known.sort().join(", ")}\n`);
  process.exit(2);
}
