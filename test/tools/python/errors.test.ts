import assert from "node:assert/strict";
import { after, test } from "node:test";
import { pythonCall, testTool } from "../python-call.ts";

const tool = testTool();
after(() => tool.close?.());

async function failure(code: string, more: Parameters<typeof pythonCall>[1] = {}, lines: string[] = []) {
  const result = await tool.run(pythonCall(code, more, lines));
  assert.equal(result.status, "error", JSON.stringify(result.data));
  assert.equal(result.error?.kind, "client_error");
  return { error: result.error!, py: result.py! };
}

test("an exception is the task's error with its type, message and the playbook's line", async () => {
  const { error, py } = await failure("quantity = 0\nraise ValueError('quantity must be positive')");
  assert.equal(error.code, "ValueError");
  assert.equal(error.retryable, false);
  assert.equal(error.message, "ValueError: quantity must be positive (flow.yaml:11)");
  assert.equal(py.exception, "ValueError");
  assert.equal(
    py.traceback,
    [
      "Traceback (most recent call last):",
      '  File "flow.yaml", line 11, in <module>',
      "    raise ValueError('quantity must be positive')",
      "ValueError: quantity must be positive",
    ].join("\n"),
  );
});

test("the traceback is in the task's log, after what the code printed", async () => {
  const lines: string[] = [];
  await failure("print('before')\n1 / 0", {}, lines);
  assert.equal(lines[0], "before");
  assert.equal(lines.at(-1), "ZeroDivisionError: division by zero");
});

test("an error inside a function has the line and name of the function", async () => {
  const { error, py } = await failure("def check(n):\n\n    return 1 / n\n\ncheck(0)");
  assert.equal(error.message, "ZeroDivisionError: division by zero (flow.yaml:12, in check)");
  assert.match(py.traceback, /line 14, in <module>\n {4}check\(0\)\n {2}File "flow\.yaml", line 12, in check/);
});

test("lines are right in code with a top-level return", async () => {
  const { error, py } = await failure("if False:\n    return 1\n\n{}['missing']\nreturn 2");
  assert.equal(error.message, "KeyError: 'missing' (flow.yaml:13)");
  assert.match(py.traceback, /line 13, in <module>\n {4}\{\}\['missing'\]/);
});

test("lines are right in main, sync and async", async () => {
  const sync = await failure("def main(n):\n    return n.nothing", { input: { n: 1 } });
  assert.equal(sync.error.message, "AttributeError: 'int' object has no attribute 'nothing' (flow.yaml:11, in main)");
  const waiting = await failure("async def main():\n    raise OSError('x')");
  assert.equal(waiting.error.message, "OSError: x (flow.yaml:11, in main)");
});

test("lines are right in scripts that are compiled again from the cache, at another place", async () => {
  const at = async (codeLine: number) =>
    (await failure("x = 1\nraise OSError", { source: { file: "other.yaml", codeLine } })).error.message;
  assert.deepEqual(
    [await at(1), await at(500), await at(1)],
    ["OSError (other.yaml:2)", "OSError (other.yaml:501)", "OSError (other.yaml:2)"],
  );
});

test("code whose line is not known counts its own lines and says so", async () => {
  const { error } = await failure("raise OSError", { source: { file: "flow.yaml" } });
  assert.equal(error.message, "OSError (flow.yaml (code):1)");
});

test("a syntax error has the playbook's line and shows the place", async () => {
  const { error, py } = await failure("x = 1\nif x = 2:\n    pass");
  assert.equal(error.code, "SyntaxError");
  assert.match(error.message, /^SyntaxError: .*\(flow\.yaml:11\)$/);
  assert.match(py.traceback, /^ {2}File "flow\.yaml", line 11\n {4}if x = 2:\n +\^\nSyntaxError: /);
});

test("a syntax error that only the compiler sees has its line too, with and without a top-level return", async () => {
  assert.match((await failure("x = 1\nbreak")).error.message, /\(flow\.yaml:11\)$/);
  assert.match((await failure("x = 1\nbreak\nreturn 1")).error.message, /\(flow\.yaml:11\)$/);
});

test("an indentation error, and code with a NUL, are errors of the code", async () => {
  assert.equal((await failure("x = 1\n  y = 2")).error.code, "IndentationError");
  assert.match((await failure("x = 1\0")).error.message, /null bytes/);
});

test("an exception raised inside a library shows the author's line only", async () => {
  const { error, py } = await failure("x = 1\njson.loads('{')");
  assert.match(error.message, /^JSONDecodeError: .*\(flow\.yaml:11\)$/);
  assert.doesNotMatch(py.traceback, /decoder\.py|harness/);
});

test("a chain of exceptions is shown from its cause", async () => {
  const { error, py } = await failure("try:\n    {}['a']\nexcept KeyError as e:\n    raise OSError('no a') from e");
  assert.equal(error.message, "OSError: no a (flow.yaml:13)");
  assert.match(py.traceback, /KeyError: 'a'\n\nThen:\n\nTraceback[\s\S]*OSError: no a$/);
});

test("an endless recursion is a short traceback", async () => {
  const { error, py } = await failure("def f(n):\n    return f(n + 1)\nf(0)");
  assert.equal(error.code, "RecursionError");
  assert.match(py.traceback, /… \d+ more calls …/);
  assert.ok(py.traceback.length < 4_000, `${py.traceback.length}`);
});

test("an exception that says it is retryable is", async () => {
  const code = "class Busy(Exception):\n    retryable = True\nraise Busy('later')";
  const { error } = await failure(code);
  assert.equal(error.code, "Busy");
  assert.equal(error.retryable, true);
});

test("an exception whose message cannot be printed is an error like any other", async () => {
  const code = "class Odd(Exception):\n    def __str__(self): raise OSError\nraise Odd()";
  assert.match((await failure(code)).error.message, /^Odd: \(its message cannot be printed\)/);
});

test("a message of a megabyte is cut", async () => {
  assert.ok((await failure("raise OSError('x' * 1000000)")).error.message.length < 5_000);
});

test("exceptions that are no Exception are errors too", async () => {
  assert.equal((await failure("raise KeyboardInterrupt")).error.code, "KeyboardInterrupt");
  assert.equal((await failure("class Stop(BaseException): pass\nraise Stop")).error.code, "Stop");
});

test("sys.exit with a status or a text is an error EXIT_<n>", async () => {
  assert.match((await failure("import sys\nsys.exit(3)")).error.message, /ended with exit status 3 \(flow\.yaml:11\)/);
  assert.equal((await failure("import sys\nsys.exit(3)")).error.code, "EXIT_3");
  const text = await failure("import sys\nsys.exit('no input')");
  assert.equal(text.error.code, "EXIT_1");
  assert.match(text.error.message, /no input/);
});

test("sys.exit(0) ends the code without an error", async () => {
  const plain = await tool.run(pythonCall("import sys\nprint('done')\nsys.exit()"));
  assert.deepEqual(plain.data, { status: "ok", stdout: "done\n" });
  const valued = await tool.run(pythonCall("import sys\nresult = 4\nsys.exit(0)\nresult = 5"));
  assert.equal(valued.data, 4);
  const main = await tool.run(pythonCall("import sys\ndef main():\n    sys.exit(0)"));
  assert.deepEqual(main.data, { status: "ok", stdout: "" });
});
