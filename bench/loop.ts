import { performance } from "node:perf_hooks";
import { compileProgram } from "../src/engine/program/program.ts";
import { loadPlaybook } from "../src/language/load/load.ts";
import { createLocalRuntime } from "../src/local/runtime.ts";
import { createToolRegistry } from "../src/tools/registry.ts";
import { type Measurement, quantile } from "./report/measurement.ts";

const LOOP = (mode: string) => `
apiVersion: flow/v2
kind: Playbook
metadata: {name: loop}
workflow:
  - step: start
    loop: {in: "{{ workload.n }}", iterator: i, spec: {mode: ${mode}, max_in_flight: 64}}
    tool: {kind: noop}
`;

const ITERATIONS = 100_000;
const WINDOW = 5_000;

/** B4: does an iteration cost more, or the process hold more, after 100,000 of them? */
export async function benchLoop(): Promise<Measurement[]> {
  return [...(await loopFigures("sequential")), ...(await loopFigures("parallel")), ...(await stepFigures())];
}

async function loopFigures(mode: "sequential" | "parallel"): Promise<Measurement[]> {
  await run(LOOP(mode), { n: 5_000 }, () => undefined);
  let ended = 0;
  let windowStart = 0;
  const windows: number[] = [];
  const heap: number[] = [];
  const start = performance.now();
  await run(LOOP(mode), { n: ITERATIONS }, (type) => {
    if (type !== "loop.iteration.completed") return;
    ended += 1;
    if (ended % WINDOW !== 0) return;
    const now = performance.now();
    if (windowStart > 0) windows.push(now - windowStart);
    globalThis.gc?.();
    heap.push(process.memoryUsage().heapUsed / 1e6);
    windowStart = performance.now();
  });
  const total = performance.now() - start;
  const early = quantile(windows.slice(0, 5), 0.5);
  const late = quantile(windows.slice(-5), 0.5);
  const name = `B4 ${mode} loop of ${ITERATIONS.toLocaleString("en-US")} noop:`;
  return [
    { name: `${name} iterations`, value: ITERATIONS / (total / 1000), unit: "/s" },
    { name: `${name} cost at the end over the start`, value: late / early, unit: "×", target: 1.2, better: "less" },
    {
      name: `${name} heap at the end less the start`,
      value: (heap.at(-1) ?? 0) - (heap[1] ?? 0),
      unit: "MB",
      target: 16,
      better: "less",
    },
  ];
}

const STEPS = 1_000;

/** A chain of 1,000 steps: the last hundred over the first hundred after the code is warm. */
async function stepFigures(): Promise<Measurement[]> {
  const steps = Array.from({ length: STEPS }, (_, index) => {
    const next = index + 1 < STEPS ? `, next: {spec: {mode: exclusive}, arcs: [{step: s${index + 1}}]}` : "";
    return `  - {step: s${index}, tool: {kind: noop}, set: {v${index}: ${index}}${next}}`;
  });
  const text = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: chain}\nworkflow:\n${steps.join("\n")}\n`;
  const early: number[] = [];
  const late: number[] = [];
  for (let round = 0; round < 12; round += 1) {
    const times: number[] = [];
    await run(text, {}, (type) => void (type === "step.completed" && times.push(performance.now())));
    if (round < 4) continue;
    early.push((times[149] ?? 0) - (times[49] ?? 0));
    late.push((times[STEPS - 1] ?? 0) - (times[STEPS - 101] ?? 0));
  }
  const value = quantile(late, 0.5) / quantile(early, 0.5);
  return [
    {
      name: "B4 cost of step 1,000 over step 100, one variable set in each",
      value,
      unit: "×",
      target: 1.2,
      better: "less",
    },
  ];
}

async function run(text: string, input: Record<string, number>, seen: (type: string) => void): Promise<void> {
  const { playbook, diagnostics } = loadPlaybook(text, "bench.yaml");
  if (playbook === undefined) throw new Error(JSON.stringify(diagnostics));
  const runtime = createLocalRuntime({
    tools: (store) => createToolRegistry({ allowPrivate: "all", store }),
    credentials: { find: async () => undefined },
    observe: (_, events) => {
      for (const event of events) seen(event.type);
    },
  });
  const program = compileProgram(playbook);
  const state = await runtime.run(
    { program, file: "bench.yaml", warnings: [] },
    { input },
    new AbortController().signal,
  );
  await runtime.close();
  if (state.status !== "COMPLETED")
    throw new Error(`The bench's playbook ended ${state.status}: ${state.error?.message}`);
}
