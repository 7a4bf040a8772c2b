import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { summarizeProfiles } from "./candidates/profile.ts";
import { benchExpressions } from "./expressions.ts";
import { benchGateway } from "./gateway.ts";
import { benchLargeLog } from "./large-log.ts";
import { benchLongRun } from "./long-run.ts";
import { benchLoop } from "./loop.ts";
import { benchPage } from "./page/bench-page.ts";
import { benchPython } from "./python.ts";
import { chartOf } from "./report/chart.ts";
import type { Measurement } from "./report/measurement.ts";
import { tableOf } from "./report/table.ts";
import { benchScale, FULL_SCALE, QUICK_SCALE } from "./scale/bench-scale.ts";
import { benchWaits } from "./scale/waits.ts";
import { FULL, QUICK } from "./service/scale.ts";
import { benchService, SERVICE_IDS } from "./service/service-bench.ts";
import { benchStartup } from "./startup.ts";
import { benchSchedules } from "./triggers/schedules.ts";
import { benchWebhooks } from "./triggers/webhooks.ts";

/** `npm run bench -- --help`. No test depends on figures. */
const USAGE = `npm run bench: every figure beside its target and its peers', as a table and as a file in bench/results/. Figures move
with the machine: compare them with the others of the same run.

  npm run bench                     everything but scale, waits and page: twenty minutes
  npm run bench -- B1 B3 startup    these parts alone
  npm run bench -- scale            a service with 10 million events and 100,000 open executions beside an empty one:
                                    half an hour, 8 GB of memory, 20 GB of disk; with --quick a tenth of it
  npm run bench -- waits            a million parked executions, and 100,000 timers that are due within one minute; 10,000 schedules that are
                                    due at one minute; 500 webhooks a second: twenty minutes, 8 GB of disk; with --quick a tenth of it.
                                    \`timers\`, \`schedules\` and \`webhooks\` are its parts
  npm run bench -- page             the web page in a browser, at 50,000 executions, 10,000 iterations and 100,000 events, and its heap
                                    over ten minutes; with --quick a tenth of it
  npm run bench -- --quick          fewer of everything: five minutes
  npm run bench -- --no-peers       without DBOS and Restate
  npm run bench -- --profile B1     where the time of server and worker goes
  npm run bench -- --chart bench/results/<run>.json
                                    measures nothing: draws docs/images/performance.svg from a run
`;

interface Part {
  name: string;
  id?: string;
  /** Runs only where it is named. */
  isApart?: boolean;
  /** @param profiles folder for profiles of its processes; absent: none. */
  run(isQuick: boolean, profiles?: string): Measurement[] | Promise<Measurement[]>;
}

/** Parts that need no service, and the ids of their measurements. */
const PARTS: readonly Part[] = [
  { name: "expressions", id: "B7", run: benchExpressions },
  { name: "startup", id: "B8", run: benchStartup },
  { name: "loop", id: "B4", run: benchLoop },
  { name: "python", run: benchPython },
  { name: "gateway", id: "B10", run: benchGateway },
  { name: "large-log", run: () => benchLargeLog(log) },
  { name: "long-run", run: (isQuick) => benchLongRun(isQuick, log) },
  { name: "page", isApart: true, run: (isQuick) => benchPage(isQuick, log) },
  { name: "timers", id: "waits", isApart: true, run: (isQuick) => benchWaits(isQuick, log) },
  { name: "schedules", id: "waits", isApart: true, run: (isQuick, folder) => benchSchedules(isQuick, log, folder) },
  { name: "webhooks", id: "waits", isApart: true, run: (isQuick, folder) => benchWebhooks(isQuick, log, folder) },
  // Half an hour, two services of 23 processes: only where it is asked for.
  { name: "scale", isApart: true, run: (isQuick) => benchScale(isQuick ? QUICK_SCALE : FULL_SCALE, log) },
];

const { values: options, positionals } = parseArgs({
  options: {
    quick: { type: "boolean" },
    "no-peers": { type: "boolean" },
    profile: { type: "boolean" },
    chart: { type: "string" },
    help: { type: "boolean" },
  },
  allowPositionals: true,
});
if (options.help) {
  process.stdout.write(USAGE);
  process.exit();
}
if (options.chart !== undefined) {
  drawChart(options.chart);
  process.exit();
}
// The processes that were started end with this one.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
const wanted = wantedParts(positionals);
const log = (line: string) => process.stderr.write(`${line}\n`);
const all: Measurement[] = [];
const [load = 0] = loadavg();
const machine = { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, load };
if (load > machine.cores / 2) log(`The machine is busy already, load ${load.toFixed(1)}: figures will be poor`);

const stamp = new Date().toISOString();
const output = join(import.meta.dirname, "../../bench/results", stamp.replace(/[:.]/g, "-"));
const profiles = options.profile ? { profiles: output } : {};
mkdirSync(options.profile ? output : dirname(output), { recursive: true });

for (const { name, id, run } of PARTS) {
  if (!wanted.includes(name) && !(id !== undefined && wanted.includes(id))) continue;
  log(`${name} …`);
  try {
    all.push(...(await run(options.quick ?? false, profiles.profiles)));
  } catch (error) {
    // Half an hour of other figures is not to be lost with it.
    log(`${name} failed: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  }
}
const ids = SERVICE_IDS.filter((id) => wanted.includes(id));
if (ids.length > 0) {
  const scale = options.quick ? QUICK : FULL;
  all.push(...(await benchService({ ids, peers: !options["no-peers"], scale, ...profiles, log })));
}
if (options.profile) log(await summarizeProfiles(output));

process.stdout.write(tableOf(all));
const run = { stamp, quick: options.quick ?? false, machine, measurements: all };
writeFileSync(`${output}.json`, `${JSON.stringify(run, null, 2)}\n`);

/** Draws the picture of docs/performance.md from the file of a run, which is ours. */
function drawChart(file: string): void {
  const { stamp, quick, machine, measurements } = JSON.parse(readFileSync(file, "utf8")) as typeof run;
  const note = `One ${quick ? "--quick " : ""}run on ${machine.cores} shared cores, ${stamp.slice(0, 10)}, Node ${machine.node.slice(1)}; all in turns, PostgreSQL durable`;
  writeFileSync(join(import.meta.dirname, "../../docs/images/performance.svg"), chartOf(measurements, note));
}

/** What the words choose, everything without words. A word that chooses nothing is a mistake, said before it costs minutes. */
function wantedParts(words: readonly string[]): readonly string[] {
  const known = [...new Set([...SERVICE_IDS, ...PARTS.flatMap(({ name, id }) => (id ? [name, id] : [name]))])];
  const unknown = words.filter((word) => !known.includes(word));
  const apart = PARTS.filter(({ isApart }) => isApart).flatMap(({ name, id }) => (id ? [name, id] : [name]));
  if (unknown.length === 0) return words.length > 0 ? words : known.filter((name) => !apart.includes(name));
  process.stderr.write(`Unknown: ${unknown.join(", ")}. There are ${known.sort().join(", ")}\n`);
  process.exit(2);
}
