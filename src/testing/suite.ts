import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { placeAt } from "../language/document/source/place.ts";
import type { LocalPlaybook } from "../local/catalog.ts";
import { createFileCatalog, folderOf, readBytes, shown } from "../local/catalog.ts";
import type { TestCase, TestDocument } from "../schema/documents/test-document.ts";
import { type Diagnostic, errorsOf } from "../schema/words/diagnostic.ts";
import { FlowError, messageOf } from "../schema/words/errors.ts";
import { KNOWN_KINDS } from "../schema/words/task-kinds.ts";
import { readTests } from "./document.ts";
import { type FindChild, nameProblem, type TaskNames, taskNames } from "./names.ts";
import { type RecordedRun, readRecordedRun } from "./recorded-run.ts";

/** The tests of one file, ready to run; where there is an error, none of them. */
export interface Suite {
  /** The test document, as people know it. */
  file: string;
  /** Absent when there is an error. */
  playbook?: LocalPlaybook;
  findChild: FindChild;
  /** With the document's defaults merged into each. */
  tests: TestCase[];
  /** Recorded runs by the name that tests give them in `using`. */
  recorded: ReadonlyMap<string, RecordedRun>;
  diagnostics: Diagnostic[];
}

const ENDING = /\.test\.ya?ml$/;

/**
 * The test documents of `targets`: a file as it is, a folder as every `*.test.yaml` below it. Throws `FlowError` if none is
 * found; the signal's reason when it is aborted during the search.
 */
export async function findTestFiles(
  targets: readonly string[],
  folder: string,
  signal?: AbortSignal,
): Promise<string[]> {
  const files: string[] = [];
  for (const target of targets) {
    const path = resolve(folder, target);
    const found = await stat(path).catch((cause: unknown) => {
      throw new FlowError("FILE_UNREADABLE", `Cannot read ${target}: ${messageOf(cause)}`, { cause });
    });
    if (!found.isDirectory()) await refusePlaybook(path, target);
    const below = found.isDirectory() ? await testFilesBelow(path, signal) : [path];
    if (below.length === 0) throw new FlowError("NOT_FOUND", `There is no test (*.test.yaml) in or below ${target}`);
    files.push(...below);
  }
  return [...new Set(files)];
}

/** A playbook in place of its tests is a slip that a list of unknown keys would not explain. */
async function refusePlaybook(path: string, target: string): Promise<void> {
  const beside = path.replace(/\.ya?ml$/, ".test.yaml");
  if (ENDING.test(path) || beside === path || !(await stat(beside).catch(() => undefined))?.isFile()) return;
  const hint = `its tests are in ${join(dirname(target), basename(beside))}`;
  throw new FlowError("USAGE", `${target} is not a test document; ${hint}`);
}

async function testFilesBelow(folder: string, signal: AbortSignal | undefined): Promise<string[]> {
  signal?.throwIfAborted();
  const entries = await readdir(folder, { withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    const isSkipped = entry.name.startsWith(".") || entry.name === "node_modules" || entry.name === "dist";
    if (entry.isDirectory() && !isSkipped) files.push(...(await testFilesBelow(path, signal)));
    else if (entry.isFile() && ENDING.test(entry.name)) files.push(path);
  }
  return files;
}

/** Reads one test document and the playbook that it tests, and checks the names that it uses. Throws only for the file. */
export async function loadSuite(file: string): Promise<Suite> {
  const catalog = createFileCatalog();
  const findChild: FindChild = (path, parentFile) => catalog.load(path, folderOf(parentFile));
  const read = readTests(await readBytes(file), shown(file));
  const suite: Suite = { file: shown(file), findChild, tests: [], recorded: new Map(), diagnostics: [] };
  const { document, root, report } = read;
  if (document === undefined || root === undefined) return { ...suite, diagnostics: read.diagnostics() };
  const target = document.playbook ?? basename(file).replace(ENDING, "");
  let playbook: LocalPlaybook;
  try {
    playbook = await catalog.load(target, dirname(resolve(file)));
  } catch (error) {
    const ofPlaybook = errorsOf(error);
    const hint = document.playbook === undefined ? "name it: `playbook: ./<file>.yaml`" : undefined;
    report("wrong-value", placeAt(root, ["playbook"]), `the playbook cannot be tested: ${messageOf(error)}`, hint);
    return { ...suite, diagnostics: [...read.diagnostics(), ...ofPlaybook] };
  }
  const names = await taskNames(playbook, findChild);
  checkNames(document, names, (keys, problem) => {
    const place = placeAt(root, keys);
    report(
      "unknown-step",
      place,
      problem.message,
      problem.hint,
      typeof place.key === "string" ? place.start : undefined,
    );
  });
  checkUnique(document, (index, name) =>
    report("duplicate-name", placeAt(root, ["tests", index, "name"]), `two tests are called \`${name}\``),
  );
  const recorded = await recordedRuns(document, dirname(resolve(file)), (keys, error) =>
    report("wrong-value", placeAt(root, [...keys, "using"]), messageOf(error)),
  );
  const diagnostics = read.diagnostics();
  if (diagnostics.some(({ severity }) => severity === "error")) return { ...suite, diagnostics };
  return {
    ...suite,
    playbook,
    recorded,
    diagnostics,
    tests: document.tests.map((test) => withDefaults(document, test)),
  };
}

/** Reads each record that the document names once. `refuse` gets where one stands that cannot be read. */
async function recordedRuns(
  { defaults = {}, tests }: TestDocument,
  folder: string,
  refuse: (keys: Keys, error: unknown) => void,
): Promise<Map<string, RecordedRun>> {
  const runs = new Map<string, RecordedRun>();
  for (const [index, { using }] of [defaults, ...tests].entries()) {
    if (using === undefined || runs.has(using)) continue;
    try {
      runs.set(using, await readRecordedRun(using, folder));
    } catch (error) {
      refuse(index === 0 ? ["defaults"] : ["tests", index - 1], error);
    }
  }
  return runs;
}

type Keys = (string | number)[];

/** Every name of a step or task that the document uses, with the keys that lead to it. */
function* namesUsed(document: TestDocument): Iterable<{ name: string; keys: Keys; also?: readonly string[] }> {
  for (const [index, test] of [document.defaults ?? {}, ...document.tests].entries()) {
    const at: Keys = index === 0 ? ["defaults"] : ["tests", index - 1];
    for (const name of Object.keys(test.mocks ?? {})) yield { name, keys: [...at, "mocks", name] };
    for (const [item, name] of (test.run_real ?? []).entries()) {
      yield { name, keys: [...at, "run_real", item], also: KNOWN_KINDS };
    }
  }
  for (const [index, { expect }] of document.tests.entries()) {
    const at: Keys = ["tests", index];
    const { calls, results, steps, skipped } = expect ?? {};
    for (const name of Object.keys(calls ?? {})) yield { name, keys: [...at, "expect", "calls", name] };
    for (const name of Object.keys(results ?? {})) yield { name, keys: [...at, "expect", "results", name] };
    for (const [item, name] of (steps ?? []).entries()) yield { name, keys: [...at, "expect", "steps", item] };
    for (const [item, name] of (skipped ?? []).entries()) yield { name, keys: [...at, "expect", "skipped", item] };
  }
}

type ReportName = (keys: Keys, problem: { message: string; hint: string }) => void;

function checkNames(document: TestDocument, names: TaskNames, report: ReportName): void {
  for (const { name, keys, also } of namesUsed(document)) {
    const problem = nameProblem(name, names, also);
    if (problem !== undefined) report(keys, problem);
  }
}

function checkUnique(document: TestDocument, report: (index: number, name: string) => void): void {
  const seen = new Set<string>();
  for (const [index, { name }] of document.tests.entries()) {
    if (seen.has(name)) report(index, name);
    seen.add(name);
  }
}

/**
 * Maps are merged by key, the test's own wins; lists are joined. A mock wins over `run_real`, so that a test's own
 * `run_real` takes the default's mock of the same name away.
 */
function withDefaults({ defaults }: TestDocument, test: TestCase): TestCase {
  if (defaults === undefined) return test;
  const mocks = { ...defaults.mocks };
  for (const name of test.run_real ?? []) delete mocks[name];
  return {
    ...defaults,
    ...test,
    workload: { ...defaults.workload, ...test.workload },
    env: { ...defaults.env, ...test.env },
    credentials: { ...defaults.credentials, ...test.credentials },
    mocks: { ...mocks, ...test.mocks },
    signals: { ...defaults.signals, ...test.signals },
    approvals: { ...defaults.approvals, ...test.approvals },
    run_real: [...(defaults.run_real ?? []), ...(test.run_real ?? [])],
  };
}
