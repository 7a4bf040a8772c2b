import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { Template } from "@huggingface/jinja";
import { compileCondition, compileTemplate } from "../src/language/template/template.ts";
import { objectScope } from "../src/language/views/scope.ts";
import type { Measurement } from "./report/measurement.ts";

/** B7: how often a second one condition and one template are evaluated over a scope of 1,000 other names. */
export function benchExpressions(): Measurement[] {
  const record: Record<string, unknown> = { output: { status: "error", http: { status: 500 }, data: { name: "x" } } };
  for (let i = 0; i < 1_000; i++) record[`item_${i}`] = { id: i, values: [i, i + 1] };
  const scope = objectScope(record);
  const condition = compileCondition("output.status == 'error' and output.http.status in [429, 500]");
  const template = compileTemplate({ url: "https://host/{{ output.data.name }}/{{ output.http.status }}" });
  const ready = new Template("{{ output.status == 'error' and output.http.status in [429, 500] }}");
  return [
    measure("B7 condition, 1,000 names in scope", 500_000, () => condition.test(scope)),
    measure("   the same by @huggingface/jinja", undefined, () => ready.render(record), 2_000),
    measure("B7 text with two values, 1,000 names in scope", undefined, () => template.render(scope)),
  ];
}

/** The best of three rounds: the others were disturbed. */
function measure(name: string, target: number | undefined, evaluate: () => unknown, count = 200_000): Measurement {
  let best = 0;
  for (let round = 0; round < 4; round++) {
    const start = performance.now();
    for (let i = 0; i < count; i++) evaluate();
    best = Math.max(best, (count * 1_000) / (performance.now() - start));
  }
  const value = Math.round(best);
  return { name, value, unit: "evaluations/s", ...(target !== undefined && { target, better: "more" as const }) };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  for (const { name, value, unit, target } of benchExpressions()) {
    const wanted = target === undefined ? "" : ` (target ${target.toLocaleString("en-US")})`;
    process.stdout.write(`${name}: ${value.toLocaleString("en-US")} ${unit}${wanted}\n`);
  }
}
