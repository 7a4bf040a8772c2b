import { failureText } from "./failure.ts";
import type { TestOutcome } from "./run-test.ts";
import type { SuiteOutcome } from "./tap.ts";

/** A JUnit XML report, as continuous integration reads it: one suite a file. Times are real seconds. */
export function junitReport(suites: readonly SuiteOutcome[]): string {
  const all = suites.flatMap(({ tests }) => tests);
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="flow test" ${totals(all)}>`,
    ...suites.flatMap(({ file, tests }) => [
      `  <testsuite name="${escapeXml(file)}" ${totals(tests)}>`,
      ...tests.flatMap((test) => caseLines(file, test)),
      "  </testsuite>",
    ]),
    "</testsuites>",
  ];
  return `${lines.join("\n")}\n`;
}

function totals(tests: readonly TestOutcome[]): string {
  const failed = tests.filter(({ failures }) => failures.length > 0).length;
  const ms = tests.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return `tests="${tests.length}" failures="${failed}" errors="0" time="${seconds(ms)}"`;
}

function caseLines(file: string, test: TestOutcome): string[] {
  const open = `    <testcase classname="${escapeXml(file)}" name="${escapeXml(test.name)}" time="${seconds(test.durationMs)}"`;
  const [first] = test.failures;
  if (first === undefined) return [`${open}/>`];
  const summary = failureText(first).split("\n")[0] ?? "";
  const details = test.failures.map(failureText).join("\n");
  return [
    `${open}>`,
    `      <failure message="${escapeXml(summary)}" type="expectation">${escapeXml(details)}</failure>`,
    "    </testcase>",
  ];
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
  "\n": "&#10;",
  "\r": "&#13;",
  "\t": "&#9;",
};

/**
 * Text for an attribute or an element. Characters that XML 1.0 cannot hold, not even escaped (control characters, halves of
 * pairs, U+FFFE and U+FFFF), become U+FFFD.
 */
export function escapeXml(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ud800-\udfff\ufffe\uffff]/gu, "\ufffd")
    .replace(/[&<>"'\n\r\t]/g, (character) => ENTITIES[character] ?? character);
}
