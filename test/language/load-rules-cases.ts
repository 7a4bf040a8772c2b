import type { DiagnosticCode } from "../../src/language/document/source/codes.ts";
import { HEAD } from "./load-support.ts";

/** One rule of the loader, shown by a document that breaks it. */
export interface RuleCase {
  code: DiagnosticCode;
  name: string;
  text: string;
  /** Every diagnostic of the document, in order: `line:column code`. */
  found: string[];
  /** Hint of the first diagnostic with the case's code. */
  hint?: string;
}

/** A document whose `workflow` begins in line 5. */
function workflow(steps: string): string {
  return `${HEAD}workflow:\n${steps}`;
}

/** A document of one step, whose tool begins in line 7. */
function tool(text: string): string {
  return workflow(`  - step: one\n    tool:\n${text}`);
}

const NOOP = "    tool: { kind: noop }\n";
const ONE = `workflow: [{ step: one, tool: { kind: noop } }]\n`;

/** Rules about the text (the shape and meaning come after). */
const TEXT_CASES: RuleCase[] = [
  {
    code: "empty-document",
    name: "a file with comments only has no document",
    text: "# nothing\n",
    found: ["1:1 empty-document"],
    hint: "a playbook begins with `apiVersion: <vendor>/v2` and `kind: Playbook`",
  },
  { code: "not-a-map", name: "a list is no playbook", text: "- a\n- b\n", found: ["1:1 not-a-map"] },
  {
    code: "not-text",
    name: "a null character is not YAML",
    text: "kind: Play\u0000book",
    found: ["1:11 not-text"],
    hint: "is this a binary file? In text, write the character as an escape in double quotes",
  },
  {
    code: "yaml-syntax",
    name: "broken YAML is reported alone, since its structure is a guess",
    text: "kind: Playbook\nnote: a: b\n",
    found: ["2:7 yaml-syntax"],
    hint: "put quotes around a text that contains `: `",
  },
  {
    code: "yaml-syntax",
    name: "text after an unquoted template is explained as missing quotes",
    text: "url: {{ base }}/users\n",
    found: ["1:16 yaml-syntax"],
    hint: 'put quotes around the template: "{{ … }}"',
  },
  {
    code: "tab-indent",
    name: "a tab as indentation is named as such",
    text: "kind: Playbook\nmetadata:\n\tname: x\n",
    found: ["3:1 tab-indent"],
    hint: "indent with spaces",
  },
  {
    code: "duplicate-key",
    name: "a key that is there twice is reported at the second",
    text: `${HEAD}${ONE}workload:\n  a: 1\n  b: 2\n  a: 3\n`,
    found: ["8:3 duplicate-key"],
    hint: "remove one of the two",
  },
  {
    code: "reserved-key",
    name: "`__proto__` is refused as a key",
    text: `${HEAD}${ONE}workload: { __proto__: { polluted: true } }\n`,
    found: ["5:13 reserved-key"],
  },
  {
    code: "unquoted-template",
    name: "a template without quotes is refused, and nothing else is said about it",
    text: workflow(`  - step: one\n    when: {{ workload.go }}\n${NOOP}`),
    found: ["6:11 unquoted-template"],
    hint: 'put quotes around the template: "{{ … }}"',
  },
  {
    code: "bad-key",
    name: "a list cannot be a key",
    text: `${HEAD}${ONE}workload:\n  [a, b]: 1\n`,
    found: ["6:3 bad-key"],
  },
  {
    code: "unknown-alias",
    name: "a text that begins with an asterisk needs quotes",
    text: `${HEAD}${ONE}workload: { files: *.csv }\n`,
    found: ["5:20 unknown-alias"],
    hint: "put quotes around a text that begins with *",
  },
  {
    code: "alias-expansion",
    name: "an alias cannot contain itself",
    text: `${HEAD}${ONE}workload: { a: &a [1, *a] }\n`,
    found: ["5:23 alias-expansion"],
  },
  {
    code: "not-json",
    name: "infinity is no JSON number",
    text: `${HEAD}${ONE}workload: { a: .inf }\n`,
    found: ["5:16 not-json"],
  },
  {
    code: "imprecise-number",
    name: "a whole number beyond 2^53 is a warning",
    text: `${HEAD}${ONE}workload: { a: 9007199254740993 }\n`,
    found: ["5:16 imprecise-number"],
    hint: "put quotes around it to keep every digit",
  },
  {
    code: "several-documents",
    name: "only the first document of a file is read",
    text: `${HEAD}${ONE}---\nkind: Other\n`,
    found: ["5:1 several-documents"],
  },
  {
    code: "yaml-warning",
    name: "an unknown tag is a warning",
    text: `${HEAD}${ONE}workload: { a: !secret x }\n`,
    found: ["5:16 yaml-warning"],
  },
];

/** Rules about keys and types. */
const SHAPE_CASES: RuleCase[] = [
  {
    code: "missing-key",
    name: "every missing key of the document is reported at once",
    text: "workload: {}\n",
    found: ["1:1 missing-key", "1:1 missing-key", "1:1 missing-key", "1:1 missing-key"],
    hint: "add `apiVersion: …`",
  },
  {
    code: "missing-key",
    name: "a step needs a name, also one that is not empty",
    text: workflow(`  - desc: x\n${NOOP}  - step: ""\n${NOOP}`),
    found: ["5:5 missing-key", "7:11 missing-key"],
  },
  {
    code: "missing-key",
    name: "metadata.name must not be empty",
    text: `apiVersion: a/v2\nkind: Playbook\nmetadata: { name: " " }\n${ONE}`,
    found: ["3:19 missing-key"],
  },
  { code: "missing-key", name: "a task needs a kind", text: tool("      url: http://a\n"), found: ["7:7 missing-key"] },
  {
    code: "missing-key",
    name: "a rule needs an action",
    text: tool('      kind: noop\n      spec: { policy: { rules: [{ when: "true" }] } }\n'),
    found: ["8:33 missing-key"],
    hint: "add `then: {…}`",
  },
  {
    code: "missing-key",
    name: "an arc needs a target",
    text: workflow(`  - step: one\n${NOOP}    next: { arcs: [{ when: "true" }] }\n`),
    found: ["7:20 missing-key"],
  },
  {
    code: "missing-key",
    name: "a cursor needs kind and claim, a keychain entry name and kind",
    text: `${HEAD}keychain: [{}]\nworkflow:\n  - step: one\n${NOOP}    loop: { cursor: {} }\n`,
    found: ["4:12 missing-key", "4:12 missing-key", "8:21 missing-key", "8:21 missing-key"],
  },
  {
    code: "wrong-type",
    name: "a number where a name stands must be quoted",
    text: workflow(`  - step: 1\n${NOOP}`),
    found: ["5:11 wrong-type"],
    hint: "put quotes around it",
  },
  {
    code: "wrong-type",
    name: "steps whose names are no text are not called duplicates of each other",
    text: workflow(`  - step: 1\n${NOOP}  - step: 2\n${NOOP}`),
    found: ["5:11 wrong-type", "7:11 wrong-type"],
  },
  {
    code: "wrong-type",
    name: "types are checked at every level at once",
    text: `${HEAD}workload: [a]\nexecutor: { spec: { no_next_is_error: maybe } }\nworkflow:\n  - step: one\n    input: text\n    tool: { kind: noop, timeout: [1], auth: 3 }\n`,
    found: ["4:11 wrong-type", "5:39 wrong-type", "8:12 wrong-type", "9:34 wrong-type", "9:45 wrong-type"],
  },
  {
    code: "wrong-type",
    name: "the task's keys on a flat step and in a task's spec are checked too",
    text: workflow(
      "  - step: one\n    tool: http\n    url: u\n    timeout: [1]\n    spec: { auth: 3, policy: { rules: x } }\n  - step: two\n    tool: { kind: noop, spec: { input: [1] } }\n",
    ),
    found: [
      "6:5 legacy-form",
      "8:14 wrong-type",
      "9:19 wrong-type",
      "9:39 wrong-type",
      "10:11 unreachable-step",
      "11:40 wrong-type",
    ],
  },
  {
    code: "wrong-type",
    name: "a time-out is a number or one whole template",
    text: tool("      kind: noop\n      timeout: 30s\n"),
    found: ["8:16 wrong-type"],
    hint: "write seconds, e.g. 30",
  },
  {
    code: "wrong-type",
    name: "a wait's time-out is a duration, a number or one whole template",
    text: tool("      kind: wait\n      signal: s\n      timeout: soon\n"),
    found: ["9:16 wrong-type"],
    hint: "write seconds, e.g. 30",
  },
  {
    code: "wrong-value",
    name: "a word that is none of those allowed is refused with the nearest",
    text: workflow(`  - step: one\n${NOOP}    loop: { in: [1], spec: { mode: paralel } }\n`),
    found: ["7:36 wrong-value"],
    hint: "did you mean `parallel`?",
  },
  {
    code: "wrong-value",
    name: "kind must be Playbook or Agent",
    text: `apiVersion: a/v2\nkind: playbook\nmetadata: { name: a }\n${ONE}`,
    found: ["2:7 wrong-value"],
    hint: "did you mean `Playbook`?",
  },
  {
    code: "wrong-value",
    name: "numbers out of range are refused",
    text: workflow(
      `  - step: one\n    tool: { kind: noop, timeout: -1 }\n    loop: { in: [1], spec: { max_in_flight: 0, on_error: { tolerate: some } } }\n`,
    ),
    found: ["6:34 wrong-value", "7:45 wrong-value", "7:70 wrong-value"],
  },
  {
    code: "wrong-value",
    name: "so are the numbers of a retry",
    text: tool(
      "      kind: noop\n      retry: 0\n      spec: { policy: { rules: [{ then: { do: retry, attempts: 1.5, delay: -1, jitter: 2, max_elapsed: -3 } }] } }\n",
    ),
    found: [
      "8:7 legacy-form",
      "8:14 wrong-value",
      "9:64 wrong-value",
      "9:76 wrong-value",
      "9:88 wrong-value",
      "9:104 wrong-value",
    ],
  },
  {
    code: "wrong-value",
    name: "a workbook tool is one task",
    text: `${HEAD}workbook: [{ name: w, tool: [{ kind: noop }, { kind: noop }] }]\n${ONE}`,
    found: ["4:29 wrong-value"],
  },
  {
    code: "wrong-value",
    name: "conditions that mix text and templates cannot be joined",
    text: workflow(
      `  - step: one\n${NOOP}    next:\n      - { when: "x{{ a }}", then: [one, one] }\n      - { else: [one] }\n`,
    ),
    found: ["7:5 legacy-form", "8:18 mixed-condition", "9:9 wrong-value"],
    hint: "write `next.arcs` with `spec.mode: inclusive`, one arc per target",
  },
  {
    code: "wrong-api-version",
    name: "apiVersion must end in /v2 behind a vendor",
    text: `apiVersion: flow/v1\nkind: Playbook\nmetadata: { name: a }\n${ONE}`,
    found: ["1:13 wrong-api-version"],
    hint: "write `<vendor>/v2`",
  },
  {
    code: "unknown-key",
    name: "unknown keys are warnings at every level, each with the nearest known one",
    text: `${HEAD}worklod: {}\nexecutor: { spec: { entry: one } }\nworkflow:\n  - step: one\n    dsc: x\n    spec: { timeot: 3 }\n    tool: { kind: http, url: http://a, heders: {} }\n    next: { arcs: [{ step: one, arg: {} }] }\n`,
    found: [
      "4:1 unknown-key",
      "5:21 unknown-key",
      "8:5 unknown-key",
      "9:13 unknown-key",
      "10:40 unknown-key",
      "11:33 unknown-key",
    ],
    hint: "did you mean `workload`?",
  },
  {
    code: "unknown-key",
    name: "merge keys are not part of YAML 1.2",
    text: workflow(
      "  - &a { step: one, tool: { kind: noop }, next: two }\n  - { <<: *a, step: two, tool: { kind: noop } }\n",
    ),
    found: ["5:43 legacy-form", "6:7 unknown-key"],
    hint: "YAML 1.2 has no merge keys: write the keys out",
  },
  {
    code: "unknown-kind",
    name: "an unknown kind is only a warning, and its keys are not judged",
    text: tool("      kind: sqs\n      whatever: 1\n"),
    found: ["7:13 unknown-kind"],
    hint: "did you mean `sql`?",
  },
  {
    code: "misspelled-kind",
    name: "a slip of a known kind is an error: one letter wrong, two in each other's place, capitals",
    text: tool("      - { kind: htpp }\n      - { kind: hptt }\n      - { kind: HTTP }\n      - { kind: contaner }\n"),
    found: ["7:17 misspelled-kind", "8:17 misspelled-kind", "9:17 misspelled-kind", "10:17 misspelled-kind"],
    hint: "did you mean `http`?",
  },
  {
    code: "misspelled-kind",
    name: "in a cursor too",
    text: workflow(`  - step: one\n${NOOP}    loop: { cursor: { kind: postgrs, claim: c } }\n`),
    found: ["7:29 misspelled-kind"],
    hint: "did you mean `postgres`?",
  },
  {
    code: "kind-without-runner",
    name: "a kind that the language knows and nothing here runs",
    text: tool("      - { kind: container, image: x }\n      - { kind: rhai, code: x }\n"),
    found: ["7:17 kind-without-runner", "8:17 kind-without-runner"],
  },
  {
    code: "unknown-kind",
    name: "so is an unknown kind of keychain entry",
    text: `${HEAD}keychain: [{ name: k, kind: oauth }]\n${ONE}`,
    found: ["4:29 unknown-kind"],
    hint: "did you mean `oauth2`?",
  },
  {
    code: "unknown-kind",
    name: "and an unknown secret manager, in whatever case it is written",
    text: `${HEAD}keychain:\n  - { name: a, kind: secrets, provider: clod_a, auth: x, map: { f: p } }\n  - { name: b, kind: secrets, provider: AWS, auth: x, map: { f: p } }\n${ONE}`,
    found: ["5:41 unknown-kind"],
    hint: "did you mean `cloud_a`?",
  },
  {
    code: "incomplete-entry",
    name: "an entry lacks what its kind needs",
    text: `${HEAD}keychain:\n${[
      "{ name: a, kind: secret_manager, map: { f: p }, auth: x }",
      "{ name: b, kind: secret_manager, provider: cloud_b, auth: x }",
      "{ name: c, kind: secret_manager, provider: cloud_c, map: { f: p } }",
      "{ name: d, kind: oauth2 }",
      "{ name: e, kind: http, auth: x }",
      "{ name: f, kind: google_id_token, auth: x }",
      "{ name: g, kind: google_id_token, target_audience: x }",
      "{ name: h, kind: static }",
      "{ name: fine, kind: oauth2, auth: x }",
    ]
      .map((entry) => `  - ${entry}\n`)
      .join("")}${ONE}`,
    found: [5, 6, 7, 8, 9, 10, 11, 12].map((line) => `${line}:5 incomplete-entry`),
    hint: "cloud_a, cloud_b or cloud_c",
  },
];

/** Forms that are gone, and older ones that are still read. */
const FORM_CASES: RuleCase[] = [
  {
    code: "removed-form",
    name: "the step blocks `case` and `sink` are gone",
    text: workflow(`  - step: one\n${NOOP}    case: []\n    sink: {}\n`),
    found: ["7:5 removed-form", "8:5 removed-form"],
    hint: "write `next: {spec: {mode: exclusive}, arcs: [{step: …, when: …}]}`, or rules in a task's `spec.policy.rules`",
  },
  {
    code: "removed-form",
    name: "kind `sink` is gone",
    text: tool("      kind: sink\n"),
    found: ["7:13 removed-form"],
    hint: "save with an ordinary task at the end of the list, e.g. `kind: sqldb`",
  },
  {
    code: "removed-form",
    name: "`eval` is gone, on the task and in its spec",
    text: tool("      - { kind: noop, eval: [] }\n      - { kind: noop, spec: { eval: [] } }\n"),
    found: ["7:23 removed-form", "8:31 removed-form"],
    hint: "write `spec.policy.rules`: a list of `{when, then: {do: …}}`",
  },
  {
    code: "removed-form",
    name: "`expr` is gone",
    text: tool("      kind: noop\n      spec: { policy: { rules: [{ expr: a, then: { do: break } }] } }\n"),
    found: ["8:35 removed-form"],
    hint: "write the condition as `when`",
  },
  {
    code: "legacy-form",
    name: "a tool as a text with its keys on the step",
    text: workflow("  - step: one\n    tool: python\n    code: result = 1\n"),
    found: ["6:5 legacy-form"],
    hint: "today: `tool: {kind: …, …}`",
  },
  {
    code: "legacy-form",
    name: "`retry`, `collection`, `loop.mode` and a path alone",
    text: workflow(
      "  - step: one\n    loop: { collection: [1], mode: parallel }\n    tool: { kind: noop, retry: 2, output: { select: [a.b] } }\n",
    ),
    found: ["6:13 legacy-form", "6:30 legacy-form", "7:25 legacy-form", "7:54 legacy-form"],
  },
  {
    code: "legacy-form",
    name: "a rule without `then`",
    text: tool("      kind: noop\n      spec: { policy: { rules: [{ when: a, do: break }] } }\n"),
    found: ["8:33 legacy-form"],
    hint: "today: `{when: …, then: {…}}`",
  },
];

/** Forms of other programs and slips that are common. */
const SLIP_CASES: RuleCase[] = [
  {
    code: "yaml-syntax",
    name: "lines of a block that are not indented are told once, at the key",
    text: tool("      kind: python\n      code: |\n      result = 1\n      print(x)\n  - step: two\n"),
    found: ["8:7 yaml-syntax"],
    hint: "its lines stand right of `code`",
  },
  {
    code: "yaml-syntax",
    name: "a command with a colon is no map",
    text: tool('      kind: shell\n      cmds:\n        - echo "A: {{ x }}"\n'),
    found: ["9:11 yaml-syntax"],
    hint: "put it into single quotes, or write it as a block behind `- |`",
  },
  {
    code: "text-as-map",
    name: "where YAML can read it as a map, it is refused all the same",
    text: tool(
      "      - { kind: shell, cmds: [echo hi, { 'echo \"A': 'x\"' }] }\n      - { kind: sql, command: { select 'a: 1 } }\n      - { kind: sql, script: { uri: x } }\n",
    ),
    found: ["7:40 text-as-map", "8:31 text-as-map"],
  },
  {
    code: "yaml-syntax",
    name: "a pasted terminal is told once",
    text: `${HEAD}${ONE}$ flow validate x.yaml\nx.yaml: valid\n$ flow run x.yaml\n  done: [ {\n`,
    found: ["5:1 yaml-syntax"],
    hint: "is it a part of a terminal's text? Remove it, or put it into a comment",
  },
  {
    code: "unknown-key",
    name: "words of other programs are told by today's",
    text: workflow(`  - step: one\n${NOOP}    next: { arcs: [{ target: one, step: one, cond: "true" }] }\n`),
    found: ["7:22 unknown-key", "7:46 unknown-key"],
    hint: "did you mean `step`?",
  },
  {
    code: "removed-form",
    name: "`case` within `next` is gone, in a list and in a map",
    text: workflow(`  - step: one\n${NOOP}    next: [{ case: [] }]\n  - step: two\n${NOOP}    next: { case: [] }\n`),
    found: ["7:5 legacy-form", "7:14 removed-form", "8:11 unreachable-step", "10:13 removed-form"],
  },
  {
    code: "wrong-type",
    name: "what is wrong within `retry` is told of its key",
    text: tool("      - { kind: noop, retry: { backoff: { x: 1 } } }\n      - { kind: noop, retry: often }\n"),
    found: ["7:23 legacy-form", "7:41 wrong-type", "8:23 legacy-form", "8:30 wrong-type"],
  },
  {
    code: "wrong-type",
    name: "a list of `args` is for kinds that nothing here runs, a time-out in parts for http",
    text: tool("      - { kind: noop, args: [a], timeout: { connect: 1 } }\n"),
    found: ["7:29 wrong-type", "7:43 wrong-type"],
  },
  {
    code: "unknown-form",
    name: "`output_select` as a map says nothing",
    text: tool("      kind: noop\n      output_select: { a: b }\n"),
    found: ["8:22 unknown-form"],
  },
  {
    code: "incomplete-task",
    name: "every kind is told what it lacks, before it is run",
    text: tool(
      [
        ...["http", "python", "postgres", "duckdb", "snowflake", "playbook", "shell", "artifact", "mcp"].map(
          (kind) => `{ kind: ${kind} }`,
        ),
        "{ kind: nats, bucket: b, operation: kv_get }",
        "{ kind: mcp, server: x, method: tools/call }",
        "{ kind: transfer, source: { url: u } }",
        '{ kind: http, url: "" }',
        "{ kind: artifact, args: { ref: r } }",
      ]
        .map((task) => `      - ${task}\n`)
        .join(""),
    ),
    found: [...Array.from({ length: 12 }, (_, index) => `${index + 7}:9 incomplete-task`), "19:28 incomplete-task"],
    hint: "add `url: …` (or `endpoint`)",
  },
  {
    code: "incomplete-task",
    name: "a block without a line is empty",
    text: tool("      kind: python\n      code: |\n      name: x\n"),
    found: ["8:13 incomplete-task"],
    hint: "its lines stand right of `code`",
  },
  {
    code: "wrong-trigger",
    name: "a trigger says when it fires, under a name of its own",
    text: `${HEAD}triggers:
  - { name: nightly, schedule: { cron: "61 * * * *", timezone: Europe/Nowhere } }
  - { name: nightly, schedule: { every: soon } }
  - { name: hourly }
${ONE}`,
    found: [
      "5:40 wrong-trigger",
      "5:64 wrong-trigger",
      "6:13 duplicate-name",
      "6:41 wrong-trigger",
      "7:5 wrong-trigger",
    ],
  },
  {
    code: "wrong-input",
    name: "an input has a schema that can be checked, one default that fits it, and none if it is a secret",
    text: `${HEAD}workload: { both: 1, kept: many, token: abc }
inputs:
  day: { type: string, format: date, default: "{{ now()[:10] }}", requird: true }
  both: { type: integer, default: 2 }
  kept: { type: integer }
  2nd: { type: string }
  link: { type: string, format: url }
  list: { type: array, items: 3 }
  mode: { enum: [full, delta], default: delt }
  token: { type: string, secret: true }
  pin: { type: integer, secret: true, default: 4711 }
${ONE}`,
    found: [
      "4:28 wrong-input",
      "4:41 wrong-input",
      "6:67 unknown-key",
      "7:35 wrong-input",
      "9:3 wrong-input",
      "10:9 wrong-input",
      "11:9 wrong-input",
      "12:41 wrong-input",
      "14:33 wrong-input",
      "14:48 wrong-input",
    ],
    hint: "no run could start with it",
  },
  {
    code: "wrong-wait",
    name: "a wait says a time, and stands alone",
    text: tool(
      [
        "{ kind: wait, for: soon }",
        '{ kind: wait, for: 1h30m, until: "2026-01-31T12:00:00Z" }',
        "{ kind: wait, until: tomorrow }",
        '{ kind: wait, until: "2026-02-30T12:00:00Z" }',
        '{ kind: wait, until: "2026-03-29T02:30", timezone: Europe/Nowhere }',
        '{ kind: wait, for: "{{ workload.pause }}" }',
        "{ kind: wait, timeout: 5 }",
        '{ kind: wait, signal: "", on_timeout: stop }',
        '{ kind: wait, signal: paid, for: 1h, when: "{{ signal.data.ok }}" }',
        "{ kind: wait, for: 1h, key: k, when: true }",
        "{ kind: wait, approval: { form: 3, required: 0 } }",
        "{ kind: wait, approval: { title: t, form: { $ref: x }, remind_every: soon, escalate: { after: 1d }, notify: { input: {} } } }",
        "{ kind: wait, approval: { title: t, approvers: { roles: [1] }, rejections: 21, titel: t }, signal: s }",
        '{ kind: wait, approval: { title: "{{ workload.pause }}", required: "{{ workload.pause }}" } }',
      ]
        .map((task) => `      - ${task}\n`)
        .join(""),
    ),
    found: [
      ...["7:7", "7:28", "8:42", "9:30", "10:30", "11:60"].map((place) => `${place} wrong-wait`),
      "12:41 unknown-variable",
      ...["13:9", "14:31", "14:47", "15:31", "16:37", "16:46"].map((place) => `${place} wrong-wait`),
      ...["17:33", "17:41", "17:54", "18:51", "18:78", "18:94", "18:117"].map((place) => `${place} wrong-wait`),
      ...["19:33", "19:65", "19:84"].map((place) => `${place} wrong-wait`),
      ...["19:88 unknown-key", "20:55 unknown-variable"],
    ],
    hint: "put the other tasks into a step before or after it",
  },
  {
    code: "wrong-option",
    name: "literals that a kind does not take; templates are left to the run",
    text: tool(
      [
        "{ kind: artifact, action: pop, ref: r }",
        "{ kind: nats, operation: kv_fetch, bucket: b }",
        "{ kind: mcp, server: s, method: tools/run, transport: sse }",
        "{ kind: http, url: u, method: PSOT, verify_ssl: maybe }",
        "{ kind: transfer, mode: upsrt, source: { type: ftp }, target: { type: sqldb } }",
        "{ kind: postgres, command: c, sslmode: on }",
        "{ kind: python, script: { uri: u, source: { type: gcs } } }",
        "{ kind: playbook, path: p, mode: asnyc }",
        '{ kind: artifact, action: "{{ workload.a or 1 }}", ref: r }',
        "{ kind: http, url: u, method: propfind, verify_ssl: false }",
      ]
        .map((task) => `      - ${task}\n`)
        .join(""),
    ),
    found: [
      "7:35 wrong-option",
      "8:34 wrong-option",
      "9:41 wrong-option",
      "10:39 wrong-option",
      "10:57 wrong-option",
      "11:33 wrong-option",
      "11:56 wrong-option",
      "12:48 wrong-option",
      "13:59 wrong-option",
      "14:42 wrong-option",
    ],
    hint: "it is one of get, put",
  },
];

/** Rules about what the document means. */
const MEANING_CASES: RuleCase[] = [
  {
    code: "empty-workflow",
    name: "a workflow has steps",
    text: `${HEAD}workflow: []\n`,
    found: ["4:11 empty-workflow"],
  },
  {
    code: "duplicate-step",
    name: "step names are unique",
    text: workflow(`  - step: one\n${NOOP}  - step: one\n${NOOP}`),
    found: ["7:11 duplicate-step"],
    hint: "the other is in line 5",
  },
  {
    code: "duplicate-label",
    name: "labels are unique within a step",
    text: tool(
      "      - { name: a, kind: noop }\n      - a: { kind: noop }\n      - { kind: noop }\n      - task_2: { kind: noop }\n",
    ),
    found: ["8:9 duplicate-label", "10:9 duplicate-label"],
  },
  {
    code: "duplicate-name",
    name: "names of keychain and workbook entries are unique",
    text: `${HEAD}keychain: [{ name: k, kind: bearer }, { name: k, kind: bearer }]\nworkbook: [{ name: w, tool: { kind: noop } }, { name: w, tool: { kind: noop } }]\n${ONE}`,
    found: ["4:47 duplicate-name", "5:55 duplicate-name"],
  },
  {
    code: "wrong-value",
    name: "labels of executions have names and values that labels can have, templates excepted",
    text: `${HEAD}executor: { spec: { labels: { -a: x, b: "", c: "{{ 7 }}\\n", d: "1\\n2", e/f.g: 3 } } }\n${ONE}`,
    found: ["4:31 wrong-value", "4:64 wrong-value"],
    hint: "letters, digits and . _ - /, first a letter or a digit, 63 characters at most",
  },
  {
    code: "wrong-value",
    name: "an execution has 32 labels at most",
    text: `${HEAD}executor: { spec: { labels: { ${Array.from({ length: 33 }, (_, n) => `l${n}: x`).join(", ")} } } }\n${ONE}`,
    found: ["4:29 wrong-value"],
    hint: "leave out what nobody looks for",
  },
  {
    code: "unknown-step",
    name: "arcs, entry and final step lead to steps that exist, templates excepted",
    text: `${HEAD}executor: { spec: { entry_step: stat, final_step: finish } }\nworkflow:\n  - step: start\n${NOOP}    next: { arcs: [{ step: starts }, { step: "{{ target }}" }] }\n`,
    found: ["4:33 unknown-step", "4:51 unknown-step", "8:28 unknown-step"],
    hint: "did you mean `start`?",
  },
  {
    code: "system-call",
    name: "system playbooks are called by system playbooks only, templates excepted",
    text: `${HEAD}workflow:\n  - step: one\n    tool: { kind: playbook, path: api_integration/idp/login }\n    next: { arcs: [{ step: two }] }\n  - step: two\n    tool: { kind: playbook, path: "/system/{{ name }}" }\n    next: { arcs: [{ step: three }] }\n  - step: three\n    tool: { kind: playbook, path: "{{ path }}" }\n    next: { arcs: [{ step: four }] }\n  - step: four\n    tool: { kind: playbook, path: systems/login }\n`,
    found: ["6:35 system-call", "9:35 system-call"],
    hint: "start it by itself, as a user who may run it",
  },
  {
    code: "unknown-label",
    name: "a jump names a task of its step",
    text: tool(
      "      - fetch: { kind: noop }\n      - parse: { kind: noop, spec: { policy: { rules: [{ when: a, then: { do: jump, to: fetc } }] } } }\n",
    ),
    found: ["8:89 unknown-label"],
    hint: "did you mean `fetch`?",
  },
  {
    code: "unknown-label",
    name: "a jump says where to, and the first task has none before it",
    text: tool(
      "      - a: { kind: noop, spec: { policy: { rules: [{ when: x, then: { do: jump } }, { else: { do: jump, to: previous } }] } } }\n",
    ),
    found: ["7:69 unknown-label", "7:109 unknown-label"],
  },
  {
    code: "unknown-action",
    name: "a rule does one of five things",
    text: tool("      kind: noop\n      spec: { policy: { rules: [{ else: { do: rety } }] } }\n"),
    found: ["8:47 unknown-action"],
    hint: "did you mean `retry`?",
  },
  {
    code: "unknown-key",
    name: "only what fails a task has a reason for it",
    text: tool(
      "      kind: noop\n      spec: { policy: { rules: [{ when: x, then: { do: fail, message: no, code: NO } }, { else: { do: break, message: no } }] } }\n",
    ),
    found: ["8:110 unknown-key"],
    hint: "it says why a rule fails the task: `do: fail`",
  },
  {
    code: "loop-without-collection",
    name: "a loop has a collection or a cursor",
    text: workflow(`  - step: one\n${NOOP}    loop: { iterator: x, in: }\n`),
    found: ["7:11 loop-without-collection"],
    hint: "add `in: …`",
  },
  {
    code: "loop-without-collection",
    name: "a loop of mode cursor has a cursor",
    text: workflow(`  - step: one\n${NOOP}    loop: { in: [1], spec: { mode: cursor } }\n`),
    found: ["7:11 loop-without-collection"],
  },
  {
    code: "missing-tool",
    name: "a step without a tool is a warning",
    text: workflow("  - step: one\n"),
    found: ["5:5 missing-tool"],
  },
  {
    code: "missing-action",
    name: "a rule without `do` is a warning",
    text: tool("      kind: noop\n      spec: { policy: { rules: [{ when: x, then: { set: { a: 1 } } }] } }\n"),
    found: ["8:50 missing-action"],
  },
  {
    code: "unreachable-step",
    name: "a step that nothing leads to is a warning, also in a ring of its own",
    text: workflow(
      `  - step: start\n${NOOP}    next: { arcs: [{ step: end }] }\n  - step: left\n${NOOP}    next: { arcs: [{ step: right }] }\n  - step: right\n${NOOP}    next: { arcs: [{ step: left }] }\n  - step: end\n${NOOP}`,
    ),
    found: ["8:11 unreachable-step", "11:11 unreachable-step"],
  },
  {
    code: "unknown-workbook",
    name: "a workbook task names a tool of the document",
    text: `${HEAD}workbook: [{ name: lookup, tool: { kind: noop } }]\nworkflow: [{ step: one, tool: { kind: workbook, name: lookpu } }]\n`,
    found: ["5:55 unknown-workbook"],
  },
];

/** Rules about templates. */
const TEMPLATE_CASES: RuleCase[] = [
  {
    code: "template-syntax",
    name: "a condition that does not parse is an error, with or without braces",
    text: workflow(`  - step: one\n    when: "a =="\n${NOOP}    next: { arcs: [{ step: one, when: "{{ ( }}" }] }\n`),
    found: ["6:16 template-syntax", "8:45 template-syntax"],
  },
  {
    code: "template-syntax",
    name: "so is a template where its value decides something, whole or within a text",
    text: `${HEAD}workflow:
  - step: one
    loop: { in: "{{ [1, }}" }
    input: { a: "b {{ 1 + }}" }
    tool:
      - { kind: http, url: "https://{{ 1 + }}/x", params: { q: "a{{ 1 + }}" }, set: { v: "a {{ 1 + }}" } }
      - { kind: http, endpoint: "{{ 1 + }}/x", args: { q: "{{ a" } }
    set: { w: "a {{ 1 + }}" }
    next: { arcs: [{ step: one, args: { x: "a {{ 1 + }}" } }] }
`,
    found: [
      "6:25 template-syntax",
      "7:27 template-syntax",
      "9:44 template-syntax",
      "9:73 template-syntax",
      "9:100 template-syntax",
      "10:23 legacy-form",
      "10:41 template-syntax",
      "10:60 template-syntax",
      "11:25 template-syntax",
      "12:54 template-syntax",
    ],
  },
  {
    code: "template-syntax",
    name: "so is a whole value wherever it stands, with a word on how to pass it on",
    text: `${HEAD}workload: { w: "{{ .Go }}" }\nworkflow:\n  - step: one\n    tool: { kind: shell, cmd: " {{ 1 + }} ", env: { A: "{{ a b }}" } }\n`,
    found: ["4:20 template-syntax", "7:40 template-syntax", "7:62 template-syntax"],
    hint: "if it is meant for another program, write {% raw %}…{% endraw %} around it",
  },
  {
    code: "foreign-template",
    name: "in a text that may be meant for others a template that does not parse is a warning at its place",
    text: tool(
      "      kind: python\n      output: {}\n      code: |\n        one\n          {{ 2 * }}\n        print('{{.Names}} {{range .Items}}x{{end}}')\n",
    ),
    found: ["11:18 foreign-template", "12:18 foreign-template", "12:35 foreign-template"],
    hint: "if it is meant for another program, write {% raw %}…{% endraw %} around it",
  },
  {
    code: "mixed-condition",
    name: "a condition that is true whatever the values are",
    text: workflow(`  - step: one\n    when: "{{ a }} == 1"\n${NOOP}`),
    found: ["6:12 mixed-condition"],
  },
  {
    code: "unknown-filter",
    name: "a filter that does not exist is named with the nearest",
    text: tool('      kind: noop\n      auth: "{{ workload | tojsn }}"\n'),
    found: ["8:26 unknown-filter"],
  },
  {
    code: "unknown-variable",
    name: "a name that is nearly a known one is a warning, wherever it is read",
    text: `${HEAD}workload: { customer: 1 }\nkeychain: [{ name: api, kind: bearer }]\nworkflow:\n  - step: fetch\n    tool: { kind: noop, input: { a: "{{ custmer }}", b: "{{ workload.customr }}", c: "{{ keychain.apii.x }}" } }\n    set: { total: "{{ fetchh.data }}" }\n    next: { arcs: [{ step: fetch, when: "ctx.totl > 1" }] }\n`,
    found: [
      "8:41 unknown-variable",
      "8:70 unknown-variable",
      "8:99 unknown-variable",
      "9:23 unknown-variable",
      "10:46 unknown-variable",
    ],
    hint: "did you mean `customer`?",
  },
  {
    code: "unknown-variable",
    name: "a field of workload, ctx, vars and steps that nothing defines, unless it is read as what may be absent",
    text: `${HEAD}workload: { customer: 1 }
workflow:
  - step: one
    when: workload.maybe == 1
    input:
      a: "{{ workload.region }} {{ ctx.total }} {{ vars.sum }} {{ steps.two.x }} {{ keychain.k.x }}"
      b: "{{ workload.a | default(1) }} {{ workload.b.c or 2 }} {{ 1 if workload.d else 2 }} {{ workload.get('e') }}"
      c: "{{ workload.a }} {{ workload.maybe }} {{ workload.f is defined }}"
${NOOP}`,
    found: ["9:23 unknown-variable", "9:40 unknown-variable", "9:57 unknown-variable", "9:73 unknown-variable"],
    hint: "give it a default in `workload`, or read it with `| default(…)`",
  },
];

/** Every rule whose document is small; the limits have tests of their own. */
export const RULE_CASES: readonly RuleCase[] = [
  ...TEXT_CASES,
  ...SHAPE_CASES,
  ...FORM_CASES,
  ...SLIP_CASES,
  ...MEANING_CASES,
  ...TEMPLATE_CASES,
];
