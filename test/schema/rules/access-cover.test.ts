import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { uncoveredBy as uncoveredRows } from "../../../src/schema/rules/access-cover.ts";
import { decideAccess, type PlaybookPermission } from "../../../src/schema/rules/access-rules.ts";

const VIEW = { canExecute: false, canView: true, canModify: false };

function row(more: Partial<PlaybookPermission>): PlaybookPermission {
  const paths = { playbookPath: null, allowPattern: null, denyPattern: null };
  return { permissionId: "1", role: "r", ...paths, ...VIEW, ...more };
}

function uncoveredBy(own: readonly PlaybookPermission[], given: PlaybookPermission) {
  return uncoveredRows(own, [given]);
}

/** A row by `path`, or by patterns: `allow ! deny`. */
function rowOf(text: string): PlaybookPermission {
  const [allowPattern = "", denyPattern = null] = text.split(" ! ");
  return row({ allowPattern, denyPattern });
}

for (const [own, given, isCovered] of [
  [[], "a", false],
  [["**"], "**", true],
  [["%"], "team/**", true],
  [["*"], "**", false],
  [["*", "*/**"], "**", true],
  [["team/**"], "team/*", true],
  [["team/**"], "team/*/x\nteam/y", true],
  [["team/*"], "team/**", false],
  [["team/**"], "te**", false],
  [["team/**"], "team*/a", false],
  [["a/**", "b/**"], "a/**\nb/**", true],
  [["a/**\nb/**"], "a/x\nb/y\nc", false],
  [["**a**b"], "a*b", true],
  [["a*b"], "**a**b", false],
  [["** ! secret/**"], "** ! secret/**", true],
  [["** ! secret/**"], "**", false],
  [["** ! secret/**"], "** ! secret/a/**", false],
  [["** ! secret/**", "secret/**"], "**", true],
  [["** ! secret/**", "secret/x"], "** ! secret/*", false],
  [["** ! secret/**"], "public/**", true],
  [["** ! a", "** ! b"], "**", true],
  [["team/** ! team/*/private"], "team/a*", true],
  [["team/** ! team/*/private"], "team/a**", false],
  [["x"], "y ! y", true],
] as const) {
  test(`[${own.join(" | ")}] ${isCovered ? "covers" : "does not cover"} ${JSON.stringify(given)}`, () => {
    const found = uncoveredBy(own.map(rowOf), rowOf(given));
    assert.equal(found === undefined, isCovered, JSON.stringify(found));
    if (found === undefined) return;
    assert.equal(decideAccess([rowOf(given)], "view", found.path ?? "").allowed, true);
    assert.equal(decideAccess(own.map(rowOf), "view", found.path ?? "").allowed, false);
  });
}

test("each action needs rows of its own, and an exact path is its row's pattern without wildcards", () => {
  const all = { canExecute: true, canView: true, canModify: true };
  const own = [row({ allowPattern: "team/**" }), row({ playbookPath: "team/a", canModify: true, canView: false })];
  assert.equal(uncoveredBy(own, row({ playbookPath: "team/x" })), undefined);
  assert.deepEqual(uncoveredBy(own, row({ playbookPath: "team/a", ...all })), { action: "execute", path: "team/a" });
  assert.equal(uncoveredBy(own, row({ playbookPath: "team/a", ...VIEW, canModify: true })), undefined);
  assert.deepEqual(uncoveredBy(own, row({ allowPattern: "team/a*", ...VIEW, canModify: true })), {
    action: "modify",
    path: "team/ab",
  });
  // Wildcards in a path are characters.
  assert.deepEqual(uncoveredBy([row({ playbookPath: "team/*" })], row({ playbookPath: "team/b" })), {
    action: "view",
    path: "team/b",
  });
});

const PATTERN = fc.stringMatching(/^[ab/*%]{0,6}$/);
const LINES = fc.array(PATTERN, { minLength: 1, maxLength: 2 }).map((lines) => lines.join("\n"));
const ROW = fc
  .record({
    playbookPath: fc.option(fc.stringMatching(/^[ab/*]{0,4}$/)),
    allowPattern: fc.option(LINES),
    denyPattern: fc.option(LINES),
    canExecute: fc.boolean(),
    canView: fc.boolean(),
    canModify: fc.boolean(),
  })
  .map((more) => row(more));

test("a covered rule allows no user more than before, and an uncovered one names a path that would", () => {
  let covered = 0;
  fc.assert(
    fc.property(
      fc.array(ROW, { maxLength: 4 }),
      ROW,
      fc.array(fc.stringMatching(/^[abc/]{0,6}$/)),
      (own, given, paths) => {
        const found = uncoveredBy(own, given);
        if (found !== undefined) {
          assert.ok(found.path !== undefined);
          assert.equal(decideAccess([given], found.action, found.path).allowed, true);
          assert.equal(decideAccess(own, found.action, found.path).allowed, false);
          return;
        }
        covered += 1;
        for (const path of paths) {
          for (const action of ["execute", "view", "modify"] as const) {
            if (decideAccess([given], action, path).allowed)
              assert.equal(decideAccess(own, action, path).allowed, true);
          }
        }
      },
    ),
    { numRuns: 3_000 },
  );
  assert.ok(covered > 100, `${covered} were covered`);
});

test("of several rows each must be covered", () => {
  const own = [rowOf("a/**")];
  assert.equal(uncoveredRows(own, []), undefined);
  assert.equal(uncoveredRows(own, [rowOf("a/x"), rowOf("a/*")]), undefined);
  assert.deepEqual(uncoveredRows(own, [rowOf("a/x"), rowOf("b")]), { action: "view", path: "b" });
});

test("patterns that cannot be compared in good time cover nothing, at once", () => {
  const began = performance.now();
  const hostile = Array.from({ length: 60 }, (_, at) => `${"*a".repeat(30)}${"*b".repeat(at)}`).join("\n");
  const found = uncoveredBy([rowOf(hostile), rowOf(`** ! ${hostile}`)], rowOf("**"));
  assert.deepEqual(found, { action: "view" });
  assert.ok(performance.now() - began < 5_000, `${performance.now() - began} ms`);
});

test("many rows of many paths are compared in good time", () => {
  const began = performance.now();
  const own = Array.from({ length: 500 }, (_, at) => rowOf(`teams/department-${at}/**`));
  assert.equal(
    uncoveredBy(
      own,
      rowOf(
        own
          .map(({ allowPattern }) => allowPattern)
          .slice(0, 20)
          .join("\n"),
      ),
    ),
    undefined,
  );
  assert.equal(uncoveredBy(own, rowOf("teams/department-499/x/**")), undefined);
  assert.ok(uncoveredBy(own, rowOf("teams/department-5*/**"))?.path !== undefined);
  assert.ok(performance.now() - began < 5_000, `${performance.now() - began} ms`);
});
