import * as v from "valibot";
import type { Json } from "../words/json.ts";
import { TASK_ERROR_KINDS } from "../words/outcome.ts";

/*
 * A test document, `*.test.yaml`: runs of one playbook with mocked tools, and what is expected of each. Maps are closed: a
 * misspelt expectation that was never checked would prove nothing.
 */

/** A key that may be absent. Null is a value here: a mock may well answer null. */
function key<S extends v.GenericSchema>(schema: S, description: string) {
  return v.exactOptional(v.pipe(schema, v.description(description)));
}

const text = v.string();
const json = v.custom<Json>(() => true);
const map = v.record(text, json);
const names = v.array(text);
const seconds = v.pipe(v.number(), v.minValue(0, "must not be negative"));
const count = v.pipe(v.number(), v.integer("must be a whole number"), v.minValue(0, "must not be negative"));
const httpStatus = v.pipe(
  v.number(),
  v.integer("must be a whole number"),
  v.minValue(100, "must be from 100 to 599"),
  v.maxValue(599, "must be from 100 to 599"),
);

/** The failure that a mock answers with. What is left out is what the real tool would say. */
export const MockError = v.strictObject({
  kind: key(v.picklist(TASK_ERROR_KINDS), "Kind of the error; default by the HTTP status, else `unknown`."),
  code: key(text, "`HTTP_503`, an SQLSTATE, or a word; default by status or kind."),
  message: key(text, "Message; default says that it is mocked."),
  retryable: key(v.boolean(), "Default by kind, status and code."),
  status: key(httpStatus, "HTTP status."),
  details: key(json, "`error.details`."),
});

/** One answer of a mocked tool. Its values may hold templates over `input`, `config`, `iter`, `call` and `attempt`. */
export const MockAnswer = v.pipe(
  v.strictObject({
    when: key(v.union([text, v.boolean()]), "Answers each call for which this condition holds."),
    result: key(json, "The result, exactly as the tool would give it; of a sub-playbook: what it returns."),
    data: key(json, "`data` of the result: for http the body, the rest is filled in."),
    rows: key(v.array(json), "Rows of an SQL result, the rest is filled in."),
    status: key(httpStatus, "HTTP status, default 200; from 400 the answer is an error."),
    headers: key(map, "HTTP headers of the answer."),
    error: key(MockError, "The call fails."),
    takes: key(seconds, "Seconds of virtual time that the call lasts; longer than the task's time-out, it times out."),
    expect_input: key(map, "What the call's inputs must contain."),
    expect_config: key(map, "What the task's rendered keys (`url`, `command`, …) must contain."),
  }),
  v.check(
    (answer) => ["result", "data", "rows"].filter((name) => Object.hasOwn(answer, name)).length <= 1,
    "has more than one of `result`, `data` and `rows`: they are three ways to say the same",
  ),
  v.check(
    (answer) => answer.error === undefined || (answer.result === undefined && answer.rows === undefined),
    "has an `error` and a result: write one of them (`data` is the body of an error)",
  ),
);

const answers = v.pipe(v.array(MockAnswer), v.minLength(1, "has no answer: write at least one"));

/** One answer that repeats, or a list: an answer a call, the last repeats. */
export const Mock = v.lazy(
  (value): v.GenericSchema<unknown, MockAnswer | MockAnswer[]> => (Array.isArray(value) ? answers : MockAnswer),
);

const range = v.strictObject({ min: key(seconds, "At least."), max: key(seconds, "At most.") });

/** What a run must have come to. Texts written `/like this/` are regular expressions. */
export const Expectations = v.strictObject({
  status: key(v.picklist(["COMPLETED", "FAILED", "CANCELLED"]), "Default COMPLETED; with `error`, FAILED."),
  result: key(json, "The run's result contains this."),
  equals: key(json, "The run's result is exactly this."),
  results: key(map, "Results of steps, by step, contain these."),
  steps: key(names, "Every step that was started, in the order of first starts."),
  skipped: key(names, "These steps were skipped."),
  calls: key(v.record(text, count), "How often a step or `step.task` called its tool, retries included."),
  variables: key(map, "Execution variables contain these."),
  files: key(v.record(text, names), "The files that steps have stored, by step: all of them, in any order."),
  error: key(
    v.strictObject({
      kind: key(text, "Kind."),
      code: key(text, "Code."),
      message: key(text, "Message."),
      step: key(text, "Step that failed."),
      task: key(text, "Task that failed."),
    }),
    "The run failed with this.",
  ),
  elapsed_seconds: key(
    v.lazy(
      (value): v.GenericSchema<unknown, number | v.InferOutput<typeof range>> =>
        typeof value === "object" ? range : seconds,
    ),
    "Virtual duration of the run in seconds: a number, or `{min, max}`.",
  ),
});

const after = v.lazy(
  (value): v.GenericSchema<unknown, string | number> => (typeof value === "number" ? seconds : text),
);

const TestSignal = v.strictObject({
  data: key(json, "What the step that waits for it goes on with; default null."),
  key: key(text, "Its key, for waits that have one."),
  after: key(after, "When it comes after the start, in virtual time: `90s`, `2h`, or seconds. Default: at the start."),
});
const testSignals = v.array(TestSignal);

const TestApproval = v.strictObject({
  decision: key(v.picklist(["approve", "reject"]), "What is said; default `approve`."),
  data: key(json, "What the form asks for."),
  comment: key(text, "What is said besides."),
  by: key(text, "The person; default one for each answer."),
  after: key(after, "When, after the approval was opened, in virtual time: `90s`, `2h`, or seconds. Default: at once."),
});
const testApprovals = v.pipe(v.array(TestApproval), v.minLength(1, "has no answer: write at least one"));

const SURROUNDINGS = {
  workload: key(map, "Inputs of the request, over the playbook's workload."),
  env: key(map, "What templates read as `env`."),
  credentials: key(v.record(text, map), "Fields of credentials by name; others exist and are empty."),
  mocks: key(v.record(text, Mock), "Answers by step, `step.task`, or `step/step` within a sub-playbook."),
  run_real: key(names, "Kinds, steps or `step.task` whose tool really runs."),
  signals: key(
    v.record(
      text,
      v.lazy(
        (value): v.GenericSchema<unknown, TestSignal | TestSignal[]> =>
          Array.isArray(value) ? testSignals : TestSignal,
      ),
    ),
    "Signals that the executions are sent, by name: one, or a list.",
  ),
  approvals: key(
    v.record(
      text,
      v.lazy(
        (value): v.GenericSchema<unknown, TestApproval | TestApproval[]> =>
          Array.isArray(value) ? testApprovals : TestApproval,
      ),
    ),
    "Answers to approvals, by step: one, or a list of which each is used once, and the last again and again.",
  ),
  using: key(text, "A recorded run, relative to this file: its answers are those of tasks without a mock."),
  now: key(v.pipe(text, v.isoTimestamp("must be a time such as 2026-01-01T00:00:00Z")), "When the run starts."),
};

/** One run and what is expected of it. */
export const TestCase = v.strictObject({
  name: v.pipe(text, v.nonEmpty("is empty"), v.description("A sentence about behaviour.")),
  ...SURROUNDINGS,
  target: key(text, "Run no further than this step."),
  expect: key(Expectations, "What must have come of it; default: the run completed."),
});

/** The document. */
export const TestDocument = v.strictObject({
  playbook: key(text, "File of the playbook, relative to this one; default: this file's name without `.test`."),
  defaults: key(v.strictObject(SURROUNDINGS), "What every test starts from; its own entries win."),
  tests: v.pipe(v.array(TestCase), v.minLength(1, "has no test: write at least one"), v.description("The tests.")),
});

/** A signal of a test, read. */
type TestSignal = v.InferOutput<typeof TestSignal>;
/** An answer to an approval in a test, read. */
type TestApproval = v.InferOutput<typeof TestApproval>;
/** The failure that a mock answers with, read. */
export type MockError = v.InferOutput<typeof MockError>;
/** One answer of a mocked tool, read. */
export type MockAnswer = v.InferOutput<typeof MockAnswer>;
/** What a run must have come to, read. */
export type Expectations = v.InferOutput<typeof Expectations>;
/** One run and what is expected of it, read. */
export type TestCase = v.InferOutput<typeof TestCase>;
/** A test document, read. */
export type TestDocument = v.InferOutput<typeof TestDocument>;
