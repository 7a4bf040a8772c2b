import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { benchExpressions } from "./expressions.ts";
import { benchLoop } from "./loop.ts";
import { isReached, type Measurement } from "./measurement.ts";
import { benchPython } from "./python.ts";
import { benchStartup } from "./startup.ts";

/*
 * `npm run bench`: every figure beside its target, as a table and as a file in bench/results/. Figures move with the
 * machine: compare them with the others of the same run. No test depends on them. Words choose parts: `-- loop startup`.
 */

const PARTS: Record<string, () => Measurement[] | Promise<Measurement[]>> = {
  expressions: benchExpressions,
  startup: benchStartup,
  loop: benchLoop,
  python: benchPython,
};

const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const all: Measurement[] = [];
for (const [name, part] of Object.entries(PARTS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  process.stderr.write(`${name} …\n`);
  all.push(...(await part()));
}

const width = Math.max(...all.map(({ name }) => name.length));
for (const measurement of all) {
  const { name, value, unit, target, better } = measurement;
  const goal =
    target === undefined
      ? ""
      : `  ${better === "less" ? "≤" : "≥"} ${shown(target)}  ${isReached(measurement) ? "reached" : "MISSED"}`;
  process.stdout.write(`${name.padEnd(width)}  ${shown(value).padStart(12)} ${unit.padEnd(14)}${goal}\n`);
}

const folder = join(import.meta.dirname, "../../bench/results");
mkdirSync(folder, { recursive: true });
const stamp = new Date().toISOString();
const machine = { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length };
writeFileSync(
  join(folder, `${stamp.replace(/[:.]/g, "-")}.json`),
  `${JSON.stringify({ stamp, machine, measurements: all }, null, 2)}\n`,
);

function shown(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}
