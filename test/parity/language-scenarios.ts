import type { JsonObject } from "../../src/schema/words/json.ts";
import type { Scenario } from "./support/scenario.ts";

type Settings = Partial<Pick<Scenario, "target" | "order" | "ends">>;

function scenario(document: string, workload: JsonObject = {}, settings: Settings = {}): Scenario {
  const { target, order = "total", ends = "COMPLETED" } = settings;
  const given = { ...workload, ...(target !== undefined && { target }) };
  const name = Object.keys(given).length === 0 ? document : `${document} with ${JSON.stringify(given)}`;
  return { name, path: `parity/${document}`, workload, order, ends, ...(target !== undefined && { target }) };
}

const parts = { order: "parts" } as const;
const fails = { ends: "FAILED" } as const;

/** The language's shapes, over the documents of `test/parity/playbooks`. */
export const LANGUAGE: readonly Scenario[] = [
  scenario("pipeline"),
  scenario("pipeline", { ends: "break" }),
  scenario("pipeline", { ends: "fail", jumps: 0 }, fails),
  scenario("routing", {}, parts),
  scenario("routing", { way: 2 }, parts),
  scenario("routing", { way: 3 }, parts),
  scenario("back_arc", {}, parts),
  scenario("back_arc", {}, { ...parts, target: "fan" }),
  scenario("loop_sequential_distributed_stop"),
  scenario("loop_sequential_distributed_stop", { bad: [1] }),
  scenario("loop_sequential_local_stop"),
  scenario("loop_sequential_local_stop", { bad: [1] }),
  scenario("loop_parallel_distributed_continue", { items: [5, 4, 3, 2, 1, 0], at_once: 3 }, parts),
  scenario("loop_parallel_distributed_continue", { bad: [3, 2] }, parts),
  scenario("loop_parallel_distributed_stop", { items: [1, 2, 3], bad: [1], at_once: 1 }),
  scenario("loop_parallel_local_continue", { items: { b: 1, a: 2 } }, parts),
  scenario("loop_parallel_local_continue", { bad: [1] }, parts),
  scenario("loop_empty"),
  scenario("loop_empty", { items: {} }),
  scenario("loop_empty", { items: "[]" }),
  scenario("cursor"),
  scenario("cursor", { rows: 0 }),
  scenario("failure", {}, { ...parts, ...fails }),
  ...[
    ...["python", "sql", "shell", "http", "template", "credential", "keychain", "kind", "parsed_only", "task_time"],
    ...["step_time", "missing", "loop_over", "lost", "arc", "set"],
  ].map((how) => scenario("failures", { how }, fails)),
  scenario("run_time", {}, fails),
  scenario("child"),
  scenario("child", {}, { target: "start" }),
  scenario("parent"),
  scenario("parent", {}, { target: "as_list" }),
  scenario("parent_async"),
  scenario("parent_wrong_step", {}, fails),
  scenario("parent_parallel", {}, parts),
  scenario("large"),
  scenario("large_text"),
  scenario("large_text", { number: "7.0" }),
  // With its other characters, one byte below the limit of what is inline, at it, and above.
  ...[65_518, 65_519, 65_520].map((size) => scenario("large_text", { size })),
  scenario("accumulate"),
  scenario("accumulate", { size: 30_000 }),
  scenario("replay"),
  scenario("large_loop_sequential"),
  scenario("large_loop_parallel", {}, parts),
  scenario("loop_result"),
  scenario("values", { name: "Ann", extra: { z: 1, a: 2 } }),
  scenario("secrets"),
  scenario("workbook"),
  scenario("transfer"),
  scenario("transfer", { target: "nobody" }, fails),
  scenario("waits"),
  scenario("waits", { pause: 0 }),
  scenario("retry"),
  scenario("retry", { attempts: 2 }, fails),
];
