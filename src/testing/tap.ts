import type { Coverage } from "./coverage.ts";
import type { Failure } from "./failure.ts";
import type { TestOutcome } from "./run-test.ts";

/** The tests of one file and how they went. */
export interface SuiteOutcome {
  file: string;
  tests: TestOutcome[];
  /** Absent where no test was run. */
  coverage?: Coverage;
}

/** A TAP 14 report; a failed test's YAML block has what was expected and what was there. */
export function tapReport(suites: readonly SuiteOutcome[]): string {
  const tests = suites.flatMap(({ file, tests: list }) => list.map((test) => ({ file, test })));
  const lines = ["TAP version 14", `1..${tests.length}`];
  for (const [index, { file, test }] of tests.entries()) {
    const ok = test.failures.length === 0;
    lines.push(`${ok ? "ok" : "not ok"} ${index + 1} - ${escapeDescription(test.name)}`);
    lines.push("  ---", `  file: ${JSON.stringify(file)}`, `  duration_ms: ${test.durationMs}`);
    if (!ok) lines.push("  failures:", ...test.failures.flatMap(failureLines));
    lines.push("  ...");
  }
  return `${lines.join("\n")}\n`;
}

/** JSON values are YAML too, so that no text of a playbook can break out of its line. */
function failureLines(failure: Failure): string[] {
  const { what, message, hint } = failure;
  const lines = [`    - what: ${JSON.stringify(what)}`];
  if (message !== "") lines.push(`      message: ${JSON.stringify(message)}`);
  if ("expected" in failure) lines.push(`      expected: ${JSON.stringify(failure.expected ?? null)}`);
  if ("actual" in failure) lines.push(`      actual: ${JSON.stringify(failure.actual ?? null)}`);
  if (hint !== undefined) lines.push(`      hint: ${JSON.stringify(hint)}`);
  return lines;
}

/** In a description `#` starts a directive, and a line break ends it. */
function escapeDescription(text: string): string {
  return text.replace(/[\r\n\t]+/g, " ").replace(/[\\#]/g, "\\$&");
}
