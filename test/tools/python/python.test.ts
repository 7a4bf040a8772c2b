import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { pythonCall, testTool } from "../python-call.ts";

const tool = testTool();
after(() => tool.close?.());

async function dataOf(code: string, input: JsonObject = {}, more: Parameters<typeof pythonCall>[1] = {}) {
  const result = await tool.run(pythonCall(code, { input, ...more }));
  assert.equal(result.status, "ok", result.error?.message);
  return result.data;
}

async function errorOf(code: string, input: JsonObject = {}, more: Parameters<typeof pythonCall>[1] = {}) {
  const result = await tool.run(pythonCall(code, { input, ...more }));
  assert.equal(result.status, "error", JSON.stringify(result.data));
  return result.error!;
}

test("the global result is the value", async () => {
  assert.deepEqual(await dataOf("result = {'sum': a + b}", { a: 1, b: 2 }), { sum: 3 });
});

test("a result of None is null, and not an absent result", async () => {
  assert.equal(await dataOf("result = None"), null);
});

test("the global result wins over a top-level return and over main", async () => {
  assert.equal(await dataOf("result = 1\ndef main(): return 3\nreturn 2"), 1);
});

test("a top-level return is the value, and the code after it does not run", async () => {
  assert.equal(await dataOf("if n > 1:\n    return 'many'\nreturn 'one'", { n: 5 }), "many");
  assert.equal(await dataOf("if n > 1:\n    return 'many'\nreturn 'one'", { n: 1 }), "one");
});

test("a bare return is null", async () => {
  assert.equal(await dataOf("return"), null);
});

test("code whose return is not reached falls through to main", async () => {
  assert.equal(await dataOf("def main(): return 'main'\nif False:\n    return 'early'"), "main");
});

test("a return inside try runs finally, and except does not catch it", async () => {
  const code = "seen = []\ntry:\n    return seen\nexcept:\n    return 'caught'\nfinally:\n    seen.append('finally')";
  assert.deepEqual(await dataOf(code), ["finally"]);
});

test("names keep their module meaning in code with a top-level return", async () => {
  const code = [
    "from __future__ import annotations",
    "import os.path",
    "total: int = 0",
    "declared: str",
    "def add(n):",
    "    global total",
    "    total += n",
    "for i in [1, 2, 3]:",
    "    add(i)",
    "class Box:",
    "    size = total",
    "with open(os.devnull) as handle:",
    "    pass",
    "try:",
    "    1 / 0",
    "except ZeroDivisionError as problem:",
    "    kind = type(problem).__name__",
    "squares = [i * total for i in range(3) if (last := i) >= 0]",
    "def later(): return [total, Box.size, i, kind, squares, last, handle.closed, extra]",
    "if total == 0:",
    "    return 'never'",
    "extra: int = 9",
    "for j, (k, *m) in [(1, (2, 3))]:",
    "    inner = [j for j in range(2)]",
    "seen = lambda: (j, k, m, inner)",
    "return later() + list(seen())",
  ].join("\n");
  assert.deepEqual(await dataOf(code), [6, 6, 3, "ZeroDivisionError", [0, 6, 12], 2, true, 9, 1, 2, [3], [0, 1]]);
});

test("without a value the answer is ok and what was printed", async () => {
  assert.deepEqual(await dataOf("print('a')\nprint('b', end='')"), { status: "ok", stdout: "a\nb" });
});

test("top-level await and async main are awaited", async () => {
  assert.equal(await dataOf("import asyncio\nawait asyncio.sleep(0)\nresult = 1"), 1);
  assert.equal(await dataOf("import asyncio\nif True:\n    await asyncio.sleep(0)\n    return 2"), 2);
  assert.equal(
    await dataOf("import asyncio\nasync def main(n):\n    await asyncio.sleep(0)\n    return n", { n: 3 }),
    3,
  );
});

test("main takes its parameters from the inputs, then from the names of the playbook, then its defaults", async () => {
  const code = "def main(a, b, c=3, *more, d, e=5, **rest): return [a, b, c, list(more), d, e, rest]";
  const names = { a: "shadowed", b: 2, d: 4, unrelated: 0 };
  assert.deepEqual(await dataOf(code, { a: 1, x: 9 }, { names: () => names }), [1, 2, 3, [], 4, 5, { x: 9 }]);
});

test("main may ask for input_data, args, context and execution_id by name", async () => {
  const code = "def main(input_data, args, context, execution_id): return [input_data, args, context, execution_id]";
  const value = await dataOf(code, { n: 1 }, { names: () => ({ w: 2 }) });
  assert.deepEqual(value, [{ n: 1 }, { n: 1 }, { w: 2 }, "1001"]);
});

test("a parameter of main that nothing has is named in the error, with the line of main", async () => {
  const error = await errorOf("x = 1\ndef main(order, limit): pass", { limit: 1 });
  assert.equal(error.code, "TypeError");
  assert.match(error.message, /main\(\) needs 'order', .*add it to the task's input \(flow\.yaml:11, in main\)/);
});

test("main may have positional-only parameters, and ** does not repeat them", async () => {
  assert.deepEqual(await dataOf("def main(a, /, **rest): return [a, rest]", { a: 1, b: 2 }), [1, { b: 2 }]);
});

test("inputs are globals, except names that are no identifiers, keywords, or special to Python", async () => {
  const input = { ok_name: 1, "not-a-name": 2, class: 3, __builtins__: 4, grün: 5 };
  const code = "result = [ok_name, grün, sorted(input_data), len(args), isinstance(__builtins__, int)]";
  assert.deepEqual(await dataOf(code, input), [
    1,
    5,
    ["__builtins__", "class", "grün", "not-a-name", "ok_name"],
    5,
    false,
  ]);
});

test("an input named input_data, context or json is that input", async () => {
  assert.equal(await dataOf("result = input_data + context + json", { input_data: 1, context: 2, json: 3 }), 6);
});

test("an input named result does not count as assigned", async () => {
  assert.equal(await dataOf("def main(): return 'main'", { result: 5 }), "main");
  assert.equal(await dataOf("result = result + 1", { result: 5 }), 6);
});

test("json, os, datetime, time, uuid, re and math are there without an import", async () => {
  const code = "result = [m.__name__ for m in (json, os, datetime, time, uuid, re, math)] + [execution_id]";
  assert.deepEqual(await dataOf(code), ["json", "os", "datetime", "time", "uuid", "re", "math", "1001"]);
});

test("the names of the playbook are built only when the code wants them", async () => {
  let built = 0;
  const names = () => {
    built++;
    return { workload: { n: 7 } };
  };
  await dataOf("import contextlib\nresult = 1", {}, { names });
  await dataOf("def main(n): return n", { n: 1 }, { names });
  assert.equal(built, 0);
  assert.equal(await dataOf("result = context['workload']['n'] + context['workload']['n']", {}, { names }), 14);
  assert.equal(await dataOf("def main(workload): return workload['n']", {}, { names }), 7);
  assert.equal(built, 2);
});

test("names that cannot be built are an error of the task that asks for them", async () => {
  const names = () => {
    throw new Error("result of fetch is gone");
  };
  const error = await errorOf("result = context", {}, { names });
  assert.match(error.message, /the names of the playbook cannot be read: result of fetch is gone/);
  assert.equal(await dataOf("result = 1", {}, { names }), 1);
});

test("libs binds modules and what is taken from them; a list imports nothing", async () => {
  const libs = {
    js: "json",
    Path: { from: "pathlib", import: "PurePath" },
    joined: { from: "os", import: "path.join" },
  };
  const code = "result = [js.dumps([1]), Path('a').name, joined('a', 'b')]";
  assert.deepEqual(await dataOf(code, {}, { config: { code, libs } }), ["[1]", "a", "a/b"]);
  assert.equal(await dataOf("", {}, { config: { code: "result = 1", libs: ["nothing-like-this"] } }), 1);
});

test("a lib that is not installed is an error that says how to install it", async () => {
  const error = await errorOf("", {}, { config: { code: "result = 1", libs: { nope: "no_such_module" } } });
  assert.equal(error.code, "ModuleNotFoundError");
  assert.match(error.message, /No module named 'no_such_module'.*-m pip install.*importing nope of libs/);
});

test("nothing of one task reaches the next", async () => {
  const one = testTool({ maxCount: 1 });
  const dirty = [
    "import sys, builtins, logging, random",
    "leaked = 1",
    "os.environ['LEAKED'] = '1'",
    "os.chdir('/')",
    "sys.path.insert(0, '/leaked')",
    "sys.argv.append('leaked')",
    "builtins.leaked = 1",
    "sys.setrecursionlimit(5000)",
    "sys.stdout = None",
    "logging.basicConfig(level=logging.DEBUG)",
    "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
    "random.seed(1)",
    "result = os.getpid()",
    "builtins.len = None",
  ].join("\n");
  const clean = [
    "import sys, builtins, logging, random",
    "print('still heard')",
    "os.system('echo and from outside')",
    "result = {'pid': os.getpid(), 'globals': 'leaked' in globals(), 'environ': 'LEAKED' in os.environ,",
    "  'cwd': os.getcwd(), 'path': '/leaked' in sys.path, 'argv': sys.argv, 'builtins': hasattr(builtins, 'leaked'),",
    "  'len': len('abc'), 'recursion': sys.getrecursionlimit(), 'handlers': len(logging.getLogger().handlers),",
    "  'debug': logging.getLogger().isEnabledFor(10), 'random': random.random() == random.Random(1).random()}",
  ].join("\n");
  try {
    const first = await one.run(pythonCall(dirty));
    const lines: string[] = [];
    const second = await one.run(pythonCall(clean, {}, lines));
    assert.deepEqual(second.data, {
      pid: first.data,
      globals: false,
      environ: false,
      cwd: process.cwd(),
      path: false,
      argv: ["flow_task"],
      builtins: false,
      len: 3,
      recursion: 1000,
      handlers: 0,
      debug: false,
      random: false,
    });
    assert.deepEqual(lines, ["still heard", "and from outside"]);
  } finally {
    await one.close?.();
  }
});

test("code runs in the working directory of the tool", async () => {
  const elsewhere = testTool({ workingDirectory: "/" });
  try {
    assert.equal((await elsewhere.run(pythonCall("result = os.getcwd()"))).data, "/");
  } finally {
    await elsewhere.close?.();
  }
});

test("a working directory that does not exist is a configuration error that names it", async () => {
  const nowhere = testTool({ workingDirectory: "/no/such/folder" });
  const result = await nowhere.run(pythonCall("result = 1"));
  assert.equal(result.error?.kind, "configuration");
  assert.match(result.error?.message ?? "", /working directory \/no\/such\/folder does not exist/);
});

test("classes of the code can be pickled and described, because their module exists while it runs", async () => {
  const code = [
    "from __future__ import annotations",
    "import pickle, dataclasses",
    "@dataclasses.dataclass",
    "class Point:",
    "    x: int",
    "result = pickle.loads(pickle.dumps(Point(3))).x",
  ].join("\n");
  assert.equal(await dataOf(code), 3);
});

test("the interpreter sees only the few environment variables that it needs", async () => {
  const env = { PATH: process.env["PATH"], FLOW_ENCRYPTION_KEYS: "secret", AWS_SECRET_ACCESS_KEY: "secret", TZ: "UTC" };
  const scrubbed = testTool({ env });
  try {
    const result = await scrubbed.run(pythonCall("result = {k: v for k, v in os.environ.items() if k != 'LC_CTYPE'}"));
    const names = [
      "FLOW_ARTIFACTS",
      "PATH",
      "PYTHONDONTWRITEBYTECODE",
      "PYTHONIOENCODING",
      "PYTHONUNBUFFERED",
      "PYTHONUTF8",
      "TZ",
    ];
    const seen = Object.keys(result.data as JsonObject).filter((name) => !/^(_?PYENV|_$|SHLVL|PWD|OLDPWD)/.test(name));
    assert.deepEqual(seen.sort(), names);
  } finally {
    await scrubbed.close?.();
  }
});
