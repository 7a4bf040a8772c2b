import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../../..");

test("the package has the program flow-doctor, which takes the doctor's words", async () => {
  const { bin, files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    bin: Record<string, string>;
    files: string[];
  };
  const program = bin["flow-doctor"] ?? "";
  assert.ok(files.includes(program));
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, [join(ROOT, program), "detec"], (error, _, told) => {
      resolve({ code: error?.code, stderr: told });
    });
  });
  assert.match(stderr, /Did you mean 'flow doctor detect'\?/);
  assert.equal(code, 3);
});
