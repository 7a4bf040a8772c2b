import type { Tool, ToolCall } from "../src/tools/contract/tool.ts";
import { createPythonTool } from "../src/tools/python/python.ts";
import { type Measurement, quantile } from "./report/measurement.ts";

/** Measures the python tool: the first task, a warm one, many at once, and 5 MB both ways. Takes about five seconds. */
export async function benchPython(): Promise<Measurement[]> {
  const tool = createPythonTool();
  try {
    const first = await timed(() => run(tool, "result = n + 1", 0));
    const warm: number[] = [];
    for (let n = 0; n < 3_000; n++) warm.push(await timed(() => run(tool, "result = n + 1", n)));
    const main: number[] = [];
    for (let n = 0; n < 2_000; n++) main.push(await timed(() => run(tool, "def main(n):\n    return n + 1", n)));
    const many = 5_000;
    const together = await timed(() => inFlight(tool, many, 64));
    const rows = Array.from({ length: 50_000 }, (_, id) => ({ id, text: "x".repeat(80) }));
    const large: number[] = [];
    for (let n = 0; n < 5; n++) large.push(await timed(() => run(tool, "result = n", rows)));
    return [
      {
        name: "python: first task, with the start of its interpreter",
        value: first,
        unit: "ms",
        target: 500,
        better: "less",
      },
      { name: "python: trivial warm task, p50", value: quantile(warm, 0.5), unit: "ms", target: 1, better: "less" },
      { name: "python: trivial warm task, p99", value: quantile(warm, 0.99), unit: "ms", target: 5, better: "less" },
      { name: "python: warm main(n), p50", value: quantile(main, 0.5), unit: "ms", target: 1, better: "less" },
      { name: "python: tasks with 64 in flight", value: many / (together / 1_000), unit: "tasks/s", target: 2_000 },
      { name: "python: 5 MB in and out, p50", value: quantile(large, 0.5), unit: "ms", target: 400, better: "less" },
    ];
  } finally {
    await tool.close?.();
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function inFlight(tool: Tool, count: number, width: number): Promise<void> {
  let next = 0;
  const runLoop = async () => {
    while (next < count) await run(tool, "result = n + 1", next++);
  };
  await Promise.all(Array.from({ length: width }, runLoop));
}

async function run(tool: Tool, code: string, n: ToolCall["input"][string]): Promise<void> {
  const result = await tool.run({
    config: { code },
    input: { n },
    auth: {},
    executionId: "1",
    trustDomain: "",
    step: "bench",
    task: "bench",
    attempt: 1,
    taskRunId: "1",
    signal: new AbortController().signal,
    log: () => {},
    names: () => ({}),
    source: { file: "bench.yaml", codeLine: 1 },
  });
  if (result.status !== "ok") throw new Error(result.error?.message);
}
