import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadPlaybook } from "../../src/language/load/load.ts";
import { formatDiagnostic } from "../../src/schema/words/diagnostic.ts";
import { flow, ROOT } from "./run-flow.ts";

/* The guides for authors: every document in them is loaded, and run where the guide says what comes of it. */

interface Snippet {
  /** `docs/playbooks.md:12`. */
  place: string;
  text: string;
  /** Of a JSON block that follows directly. */
  result: unknown;
}

/** The fenced YAML blocks that are documents, or steps of one. */
function snippets(guide: string): Snippet[] {
  const markdown = readFileSync(join(ROOT, guide), "utf8");
  const found: Snippet[] = [];
  for (const block of markdown.matchAll(/^```yaml\n(.*?)^```\n(?:\n```json\n(.*?)^```\n)?/gms)) {
    const [, yaml = "", json] = block;
    const place = `${guide}:${markdown.slice(0, block.index).split("\n").length}`;
    found.push({ place, text: documentOf(yaml, place), result: json === undefined ? undefined : JSON.parse(json) });
  }
  return found;
}

function documentOf(yaml: string, place: string): string {
  if (yaml.startsWith("apiVersion:")) return yaml;
  assert.match(yaml, /^- step: /, `${place}: a block is a whole document, or steps`);
  const steps = yaml.replace(/^(?=.)/gm, "  ");
  // Steps alone read inputs that the playbook around them defines.
  const inputs = new Set([...yaml.matchAll(/workload\.(\w+)/g)].map(([, name]) => `    ${name}: null\n`));
  const workload = inputs.size === 0 ? "" : `workload:\n${[...inputs].join("")}`;
  return `apiVersion: flow/v2\nkind: Playbook\nmetadata:\n  name: snippet\n${workload}workflow:\n${steps}`;
}

for (const guide of ["docs/playbooks.md", "docs/tools.md"]) {
  test(`every document of ${guide} is valid, without a warning`, () => {
    const all = snippets(guide);
    assert.ok(all.length >= 8, `${all.length} blocks`);
    for (const { place, text } of all) {
      const { diagnostics } = loadPlaybook(text, place);
      assert.deepEqual(diagnostics.map(formatDiagnostic), [], place);
    }
  });

  test(`every document of ${guide} that shows a result has that result`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "flow-docs-"));
    try {
      const shown = snippets(guide).filter(({ result }) => result !== undefined);
      assert.notEqual(shown.length, 0);
      for (const { place, text, result } of shown) {
        const file = join(folder, "snippet.yaml");
        await writeFile(file, text);
        const exit = await flow(["run", file, "--runtime", "local", "--json"]);
        assert.equal(exit.code, 0, `${place}: ${exit.stdout}${exit.stderr}`);
        assert.deepEqual(JSON.parse(exit.stdout).result, result, place);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
}

for (const guide of ["docs/triggers.md", "docs/waiting.md", "docs/approvals.md"]) {
  test(`every document of ${guide} is valid, and its tests pass`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "flow-docs-"));
    const markdown = readFileSync(join(ROOT, guide), "utf8");
    let count = 0;
    let tested = 0;
    try {
      for (const [, text = ""] of markdown.matchAll(/^```yaml\n(.*?)^```\n/gms)) {
        if (text.startsWith("apiVersion:")) {
          count += 1;
          await writeFile(join(folder, "snippet.yaml"), text);
          const { code, stdout, stderr } = await flow(["validate", join(folder, "snippet.yaml")]);
          assert.equal(code, 0, `${guide}:\n${text}\n${stdout}${stderr}`);
          assert.doesNotMatch(`${stdout}${stderr}`, /warning/, guide);
        } else if (text.startsWith("tests:")) {
          tested += 1;
          await writeFile(join(folder, "snippet.test.yaml"), text);
          const { code, stdout, stderr } = await flow(["test", folder]);
          assert.equal(code, 0, `${guide}:\n${text}\n${stdout}${stderr}`);
        }
      }
    } finally {
      await rm(folder, { recursive: true });
    }
    assert.ok(
      count > 0 && (tested > 0 || guide !== "docs/approvals.md"),
      `${guide}: ${count} documents, ${tested} tests`,
    );
  });
}

test("every link of the guides to a file leads to one", () => {
  for (const guide of ["docs/playbooks.md", "docs/tools.md", "playbooks/examples/README.md"]) {
    const markdown = readFileSync(join(ROOT, guide), "utf8");
    for (const [, target = ""] of markdown.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      const file = join(ROOT, guide, "..", target);
      assert.doesNotThrow(() => readFileSync(file), `${guide} links to ${target}`);
    }
    for (const [, anchor = ""] of markdown.matchAll(/\]\(#([^)]+)\)/g)) {
      const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => anchorOf(title));
      assert.ok(headings.includes(anchor), `${guide} has no heading for #${anchor}`);
    }
  }
});

/** As code hosts make it: lower case, hyphens for spaces, nothing but letters, digits and hyphens. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, "")
    .replaceAll(" ", "-");
}
