import assert from "node:assert/strict";
import { test } from "node:test";
import { fitToTerminal, writeTable } from "../../../src/cli/terminal/table.ts";
import { formatAgo } from "../../../src/cli/terminal/text.ts";

function lines(headings: string[], rows: string[][], look: Parameters<typeof writeTable>[3]): string[] {
  let text = "";
  const stream = {
    write(part: string) {
      text += part;
    },
  };
  writeTable(stream, headings, rows, look);
  return text.trimEnd().split("\n");
}

const ROWS = [["373961284153344", "etl/a-long-path/that-goes-on-and-on", "COMPLETED"]];

test("a table is cut to the terminal's columns, in the columns that may be", () => {
  const shown = lines(["ID", "PATH", "STATUS"], ROWS, { columns: 50, shrink: ["PATH"] });
  assert.deepEqual(shown, [
    "ID               PATH                    STATUS",
    "373961284153344  etl/a-long-path/that-…  COMPLETED",
  ]);
  assert.ok(shown.every((line) => line.length <= 50));
});

test("a table that fits is not cut, and neither is output that does not go to a terminal", () => {
  const whole = lines(["ID", "PATH", "STATUS"], ROWS, {});
  assert.match(whole[1] ?? "", /that-goes-on-and-on/);
  assert.deepEqual(lines(["ID", "PATH", "STATUS"], ROWS, { columns: 80, shrink: ["PATH"] }), whole);
  assert.deepEqual(fitToTerminal({ stdout: { columns: 40 } }, ["PATH"]), {});
  assert.deepEqual(fitToTerminal({ stdout: { isTTY: true, columns: 40 } }, ["PATH"]), {
    columns: 40,
    shrink: ["PATH"],
  });
});

test("a column keeps its least width, and then the next one is cut", () => {
  const shown = lines(["A", "B"], [["a".repeat(30), "b".repeat(30)]], { columns: 30, shrink: ["A", "B"] });
  assert.deepEqual(shown[1], `${"a".repeat(9)}…  ${"b".repeat(17)}…`);
});

test("how long ago something was takes a few characters", () => {
  const at = (ms: number) => formatAgo(0, ms);
  assert.deepEqual([999, 1_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_399_999, 86_400_000].map(at), [
    "now",
    "1s ago",
    "59s ago",
    "1m ago",
    "59m ago",
    "1h ago",
    "23h ago",
    "1d ago",
  ]);
  assert.equal(formatAgo(5_000, 0), "now", "another machine's clock is ahead");
});
