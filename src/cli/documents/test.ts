import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { loadConfig } from "../../platform/config/config.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { ResultStore } from "../../ports/result-store.ts";
import { formatDiagnostic } from "../../schema/words/diagnostic.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type Coverage, coverageOf } from "../../testing/coverage.ts";
import { failureText } from "../../testing/failure.ts";
import { junitReport } from "../../testing/junit.ts";
import { runTest, type TestOutcome } from "../../testing/run-test.ts";
import { findTestFiles, loadSuite, type Suite } from "../../testing/suite.ts";
import { type SuiteOutcome, tapReport } from "../../testing/tap.ts";
import { createToolRegistry, type ToolRegistry } from "../../tools/registry.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, formatDuration, jsonText, plural } from "../terminal/text.ts";

/**
 * `flow test`: runs `*.test.yaml` documents. Exit code 0 when all pass, 1 when a test fails, 2 when a document is not valid
 * (nothing is run then), 130 when cancelled.
 */
export async function runTests({ arguments: targets, options, io }: CliInput): Promise<number> {
  const files = await findTestFiles(targets, io.folder, io.signal);
  const suites: Suite[] = [];
  for (const file of files) suites.push(await loadSuite(file));
  if (printProblems(suites, io)) return EXIT.usage;
  const chosen = filtered(suites, textOption(options, "filter"));

  const isReport = options["json"] === true || options["tap"] === true;
  const style = styleFor(io.stdout, io, false);
  const tools = openRealTools(io);
  const outcomes: SuiteOutcome[] = [];
  try {
    for (const suite of chosen) outcomes.push(await runSuite(suite, tools, io, isReport ? undefined : style));
  } finally {
    await tools.close();
  }
  if (io.signal.aborted) return EXIT.cancelled;
  await report(outcomes, isReport, style, { arguments: targets, options, io });
  return outcomes.some(({ tests }) => tests.some(({ failures }) => failures.length > 0)) ? EXIT.failed : EXIT.ok;
}

/** Runs the tests of one document, one after the other; with a style, prints each as it ends. */
async function runSuite(suite: Suite, tools: RealTools, io: CliIo, style: Style | undefined): Promise<SuiteOutcome> {
  const { file, playbook, findChild, recorded } = suite;
  const outcome: SuiteOutcome = { file, tests: [] };
  if (style !== undefined) io.stdout.write(`${style.strong(cleanText(file))}\n`);
  for (const test of suite.tests) {
    if (io.signal.aborted || playbook === undefined) break;
    const run = test.using === undefined ? undefined : recorded.get(test.using);
    const context = { playbook, findChild, recorded: run, realTools: tools.of, signal: io.signal };
    const result = await runTest(test, context);
    outcome.tests.push(result);
    if (style !== undefined) io.stdout.write(testLines(result, style));
  }
  if (playbook === undefined || outcome.tests.length === 0) return outcome;
  outcome.coverage = coverageOf(playbook.program, outcome.tests);
  if (style !== undefined) io.stdout.write(coverageLines(outcome.coverage, style));
  return outcome;
}

/** Writes every problem of the documents; true when one is an error. */
function printProblems(suites: readonly Suite[], io: CliIo): boolean {
  const all = suites.flatMap(({ diagnostics }) => diagnostics);
  for (const diagnostic of all) io.stderr.write(`${cleanText(formatDiagnostic(diagnostic))}\n`);
  return all.some(({ severity }) => severity === "error");
}

function filtered(suites: readonly Suite[], text: string | undefined): Suite[] {
  if (text === undefined) return [...suites];
  const needle = text.toLowerCase();
  const chosen = suites
    .map((suite) => ({ ...suite, tests: suite.tests.filter(({ name }) => name.toLowerCase().includes(needle)) }))
    .filter(({ tests }) => tests.length > 0);
  if (chosen.length > 0) return chosen;
  const count = plural(
    suites.reduce((sum, { tests }) => sum + tests.length, 0),
    "test",
  );
  throw new FlowError("USAGE", `--filter: no test of ${count} has '${text}' in its name`);
}

/** The real tools of all tests. */
interface RealTools {
  /** The tools for a test whose results are in this store. */
  of(results: ResultStore): ToolRegistry;
  close(): Promise<void>;
}

/**
 * Real tools, for the kinds and steps that a test lets run. One set for all tests, since a Python interpreter takes a third
 * of a second to start; tests run one after the other, so that stored results are those of the test that runs.
 */
function openRealTools(io: CliIo): RealTools {
  const config = loadConfig(io.environment);
  let current: ResultStore | undefined;
  const store: ResultStore = {
    async load(ref) {
      if (current === undefined)
        throw new FlowError("REFERENCE_NOT_AVAILABLE", `The result ${ref} belongs to no running test`);
      return await current.load(ref);
    },
  };
  const registry = createToolRegistry({
    allowPrivate: config.httpAllowPrivate,
    proxyOf: proxyRules(config),
    store,
    ...(config.workerTools !== "all" && { kinds: config.workerTools }),
    ...(config.python !== undefined && { python: { pythonPath: config.python } }),
    duckdb: { files: config.duckdbFiles, memory: config.duckdbMemory },
  });
  return {
    of(results: ResultStore) {
      current = results;
      return registry;
    },
    close: () => registry.close(),
  };
}

function testLines(test: TestOutcome, style: Style): string {
  const ok = test.failures.length === 0;
  const virtual = test.elapsedSeconds > 0 ? `, ${formatDuration(test.elapsedSeconds * 1000)} of virtual time` : "";
  const times = style.dim(`(${formatDuration(test.durationMs)}${virtual})`);
  const head = `  ${ok ? style.good("✓") : style.bad("✗")} ${cleanText(test.name)} ${times}`;
  if (ok) return `${head}\n`;
  const details = test.failures.flatMap((failure) => failureText(failure).split("\n"));
  const ran = test.steps.length === 0 ? [] : [style.dim(`steps that ran: ${cleanText(test.steps.join(", "))}`)];
  return `${[head, ...details.map(cleanText).map((line) => `      ${line}`), ...ran.map((line) => `      ${line}`)].join("\n")}\n`;
}

/** Names that are listed of what no test came to. */
const MISSING_LISTED_MAX = 10;

/** `4 of 5 steps, 3 of 5 arcs`, and what is missing. */
function coverageLines({ steps, arcs }: Coverage, style: Style): string {
  const counts = [
    `${steps.covered} of ${plural(steps.total, "step")}`,
    `${arcs.covered} of ${plural(arcs.total, "arc")}`,
  ];
  const missing = [
    ["not run", steps.missing],
    ["not taken", arcs.missing],
  ] as const;
  const lines = [`covered: ${counts.join(", ")}`];
  for (const [what, names] of missing) {
    const rest = names.length > MISSING_LISTED_MAX ? ` and ${names.length - MISSING_LISTED_MAX} more` : "";
    if (names.length > 0)
      lines.push(`  ${what}: ${names.slice(0, MISSING_LISTED_MAX).map(cleanText).join(", ")}${rest}`);
  }
  return lines.map((line) => `  ${style.dim(line)}\n`).join("");
}

async function report(outcomes: SuiteOutcome[], isReport: boolean, style: Style, input: CliInput): Promise<void> {
  const { options, io } = input;
  const tests = outcomes.flatMap((outcome) => outcome.tests);
  const failed = tests.filter(({ failures }) => failures.length > 0).length;
  const durationMs = tests.reduce((sum, test) => sum + test.durationMs, 0);
  const junit = textOption(options, "junit");
  if (junit !== undefined) await writeReport(resolve(io.folder, junit), junitReport(outcomes));
  if (options["tap"] === true) io.stdout.write(tapReport(outcomes));
  if (options["json"] === true) io.stdout.write(`${jsonText(jsonReport(outcomes))}\n`);
  if (isReport) return;
  const passed = tests.length - failed;
  const verdict = failed === 0 ? style.good(`${plural(passed, "test")} passed`) : style.bad(`${failed} failed`);
  const rest = failed === 0 ? "" : `, ${passed} passed`;
  io.stdout.write(`\n${verdict}${rest} ${style.dim(`(${formatDuration(durationMs)})`)}\n`);
}

/** `flow test --json`: counts, then every test by file (see docs/testing-playbooks.md). */
function jsonReport(outcomes: readonly SuiteOutcome[]): object {
  const all = outcomes.flatMap(({ tests }) => tests);
  const failed = all.filter(({ failures }) => failures.length > 0).length;
  return {
    passed: all.length - failed,
    failed,
    duration_ms: all.reduce((sum, { durationMs }) => sum + durationMs, 0),
    files: outcomes.map(({ file, tests, coverage }) => ({
      file,
      ...(coverage !== undefined && { coverage }),
      tests: tests.map(({ name, failures, durationMs, elapsedSeconds, steps }) => ({
        name,
        ok: failures.length === 0,
        duration_ms: durationMs,
        elapsed_seconds: elapsedSeconds,
        steps,
        failures: failures.map((failure) => ({
          ...failure,
          ...("expected" in failure && { expected: failure.expected ?? null }),
          ...("actual" in failure && { actual: failure.actual ?? null }),
        })),
      })),
    })),
  };
}

async function writeReport(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot write the report ${file}: ${messageOf(cause)}`, { cause });
  }
}
