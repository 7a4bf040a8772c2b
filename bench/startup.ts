import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { type Measurement, quantile } from "./report/measurement.ts";

const THREE_STEPS = `
apiVersion: flow/v2
kind: Playbook
metadata: {name: three}
workload: {who: world}
workflow:
  - {step: start, tool: {kind: noop, result: {text: "hello {{ who }}"}}, next: {spec: {mode: exclusive}, arcs: [{step: middle}]}}
  - {step: middle, tool: {kind: noop}, next: {spec: {mode: exclusive}, arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {text: "{{ start.text }}"}}}
`;

/** B8: `flow run` of three steps, from the start of the process to its end, beside a Node process that does nothing. */
export function benchStartup(): Measurement[] {
  const folder = mkdtempSync(join(tmpdir(), "flow-bench-"));
  try {
    const file = join(folder, "three.yaml");
    writeFileSync(file, THREE_STEPS);
    const flow = join(import.meta.dirname, "../../bin/flow.js");
    const runs = repeat([flow, "run", file, "--runtime", "local", "--json"]);
    const bare = repeat(["-e", "0"]);
    return [
      { name: "B8 flow run of 3 steps, p50", value: quantile(runs.ms, 0.5), unit: "ms", target: 250, better: "less" },
      {
        name: "B8 flow run of 3 steps, peak memory",
        value: quantile(runs.mb, 0.5),
        unit: "MB",
        target: 90,
        better: "less",
      },
      { name: "   a Node process that does nothing, p50", value: quantile(bare.ms, 0.5), unit: "ms" },
      { name: "   a Node process that does nothing, peak memory", value: quantile(bare.mb, 0.5), unit: "MB" },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prints the peak memory of the process at its end, as one line on standard error. */
const PEAK = "process.on('exit',()=>process.stderr.write('\\npeak '+process.resourceUsage().maxRSS+'\\n'))";

function repeat(args: string[]): { ms: number[]; mb: number[] } {
  const ms: number[] = [];
  const mb: number[] = [];
  for (let round = 0; round < 12; round += 1) {
    const start = performance.now();
    const plain = spawnSync(process.execPath, args, { encoding: "utf8" });
    const elapsed = performance.now() - start;
    if (plain.status !== 0) throw new Error(`node ${args.join(" ")} ended ${plain.status}: ${plain.stderr}`);
    const measured = spawnSync(process.execPath, ["--import", `data:text/javascript,${PEAK}`, ...args], {
      encoding: "utf8",
    });
    const peak = /\npeak (\d+)/.exec(measured.stderr)?.[1];
    if (round < 2) continue;
    ms.push(elapsed);
    mb.push(Number(peak) / 1024);
  }
  return { ms, mb };
}
