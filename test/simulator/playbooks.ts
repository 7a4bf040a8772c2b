import type { Signal } from "../../src/schema/words/command.ts";
import type { Json } from "../../src/schema/words/json.ts";
import type { CommandProgram } from "../../src/services/orchestration/memory/program-cache.ts";
import { compile } from "../engine/support/playbook.ts";

/** A playbook to simulate. Its kinds do not matter: every task is scripted (see tools.ts). */
export interface Simulated {
  name: string;
  /** Its path in the catalog. */
  path: string;
  /** How far its steps come depends on which is faster; how it ends does not. */
  isRacy: boolean;
  /** What each of its executions is sent. */
  signals: readonly Signal[];
  /** Whether people decide over what it asks. */
  hasPeople: boolean;
  /** Rows that its cursor's claims give. */
  rows: readonly Json[];
}

const TEXTS: Record<string, string> = {
  "chain with retries": `
workflow:
  - { step: a, tool: { kind: noop, result: { n: 1 } }, set: { ctx.n: "{{ a.n }}" }, next: b }
  - step: b
    tool:
      kind: noop
      flaky: 2
      result: { n: "{{ n + 1 }}" }
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 5, backoff: exponential, delay: 0.5, jitter: true } }] } }
    next: c
  - { step: c, tool: { kind: noop, result: { n: "{{ b.n + 1 }}" } } }
`,
  "diamonds with joins": `
workflow:
  - { step: a, next: [b, c, d] }
  - { step: b, tool: { kind: noop, result: { v: 1 } }, next: { arcs: [{ step: e, set: { from_b: "{{ b.v }}" } }] } }
  - { step: c, tool: { kind: noop, result: { v: 2 } }, next: c2 }
  - { step: c2, when: "{{ c.v == 2 }}", tool: { kind: noop, result: { v: 3 } }, next: { arcs: [{ step: e, when: "{{ c2.v == 4 }}" }, { step: z, set: { from_c: "{{ c2.v }}" } }] } }
  - { step: d, when: false, next: e }
  - { step: e, tool: { kind: noop, result: { v: "{{ from_b * 10 }}" } }, next: z }
  - { step: z, tool: { kind: noop, result: { v: "{{ e.v + from_c }}" } } }
`,
  "parallel loop": `
workflow:
  - step: each
    loop: { in: 7, iterator: n, spec: { mode: parallel, max_in_flight: 3 } }
    tool:
      kind: noop
      flaky: 1
      result: { square: "{{ n * n }}" }
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: 0.2 } }] } }
    set: { ctx.all: "{{ output.data | length }}" }
    next: end
  - { step: end, tool: { kind: noop, result: { last: "{{ each.results[6].square }}", all: "{{ all }}" } } }
`,
  "sequential loop that writes": `
workflow:
  - step: each
    loop: { in: [3, 1, 2], iterator: n }
    tool: { kind: noop, result: { seen: "{{ sum | default(0) }}" }, set: { ctx.sum: "{{ (sum | default(0)) + n }}" } }
    next: end
  - { step: end, tool: { kind: noop, result: { sum: "{{ sum }}", seen: "{{ each.results[2].seen }}" } } }
`,
  "local loop that writes": `
workflow:
  - step: each
    loop: { in: 4, iterator: n, spec: { policy: { exec: local } } }
    tool:
      - { name: one, kind: noop, result: { v: "{{ n }}" }, set: { x: "{{ output.v + 1 }}" } }
      - { name: two, kind: noop, result: { w: "{{ x + (sum | default(0)) }}" }, set: { ctx.sum: "{{ (sum | default(0)) + n }}" } }
    next: end
  - { step: end, tool: { kind: noop, result: { sum: "{{ sum }}", w: "{{ each.results[3].w }}" } } }
`,
  "local parallel loop": `
workflow:
  - step: each
    loop: { in: { a: 1, b: 2, c: 3, d: 4, e: 5 }, iterator: kv, spec: { mode: parallel, max_in_flight: 2, policy: { exec: local } } }
    tool: { kind: noop, result: { k: "{{ kv.key }}", v: "{{ kv.value }}" } }
`,
  "rounds over a join": `
workflow:
  - { step: start, tool: { kind: noop, result: { round: 0 } }, set: { ctx.round: 0 }, next: split }
  - { step: split, next: [left, right] }
  - { step: left, tool: { kind: noop, result: { n: "{{ round }}" } }, next: join }
  - { step: right, tool: { kind: noop, result: { n: "{{ round + 1 }}" } }, next: join }
  - step: join
    tool: { kind: noop, result: { sum: "{{ left.n + right.n }}" } }
    next: { arcs: [{ step: split, when: "{{ round < 2 }}", set: { ctx.round: "{{ round + 1 }}" } }, { step: end }] }
  - { step: end, tool: { kind: noop, result: { sum: "{{ join.sum }}", round: "{{ round }}" } } }
`,
  "handled failure": `
workflow:
  - { step: a, next: [b, c] }
  - step: b
    tool: { kind: noop, fail: true }
    next: { arcs: [{ step: never }, { step: fix, when: "event.name == 'step.failed'", set: { why: "{{ output.error.code }}" } }] }
  - { step: never }
  - { step: c, next: z }
  - { step: fix, tool: { kind: noop, result: { why: "{{ why }}" } }, next: z }
  - { step: z, tool: { kind: noop, result: { why: "{{ fix.why }}" } } }
`,
  "unhandled failure": `
workflow:
  - { step: a, next: [b, each] }
  - { step: b, tool: { kind: noop, fail: true }, next: never }
  - { step: each, loop: { in: 5 }, next: never }
  - { step: never }
`,
  "loop with tolerated failures": `
workflow:
  - step: some
    loop: { in: [false, true, false, true, false], iterator: bad, spec: { mode: parallel, max_in_flight: 2, on_error: { tolerate: 2 } } }
    tool: { kind: noop, fail: "{{ bad }}" }
    next: { arcs: [{ step: most, when: "event.name == 'loop.done'", set: { failed: "{{ result.stats.failed }}" } }] }
  - step: most
    loop: { in: [true, false, true], iterator: bad, spec: { on_error: continue } }
    tool: { kind: noop, fail: "{{ bad }}" }
    next: { arcs: [{ step: end, when: "event.name == 'loop.done'" }] }
  - { step: end, tool: { kind: noop, result: { failed: "{{ failed + most.stats.failed }}" } } }
`,
  "local loop that stops at a failure": `
workflow:
  - step: each
    loop: { in: [0, 0, 1, 0], iterator: bad, spec: { policy: { exec: local } } }
    tool: { kind: noop, fail: "{{ bad == 1 }}", result: { n: "{{ iter.index }}" } }
    next: { arcs: [{ step: end, when: "event.name == 'step.failed'" }] }
  - { step: end, tool: { kind: noop, result: { stats: "{{ each.stats }}", first: "{{ each.results[0].n }}" } } }
`,
  "failure that leads back": `
workflow:
  - { step: start, tool: { kind: noop, result: { tries: "{{ tries | default(0) }}" } }, next: work }
  - step: work
    tool: { kind: noop, fail: "{{ (tries | default(0)) < 2 }}", result: { after: "{{ tries }}" } }
    next: { arcs: [{ step: start, when: "event.name == 'step.failed'", set: { ctx.tries: "{{ (tries | default(0)) + 1 }}" } }] }
`,
  cursor: `
workflow:
  - step: each
    loop: { cursor: { kind: postgres, claim: "{{ __frame_max_rows }}" }, iterator: row, spec: { mode: cursor, frame: { max_rows: 2, row_concurrency: 2 } } }
    tool: { kind: noop, result: { id: "{{ row.id }}" } }
`,
  "pipeline with a jump": `
workflow:
  - step: a
    tool:
      - { name: one, kind: noop, result: { n: "{{ (n | default(0)) + 1 }}" }, set: { n: "{{ output.n }}" } }
      - name: two
        kind: noop
        result: { m: "{{ one.n * 10 }}" }
        spec: { policy: { rules: [{ when: "{{ one.n < 3 }}", then: { do: jump, to: one, set: { "ctx.n": "{{ one.n }}" } } }, { when: "{{ one.n == 3 }}", then: { do: break } }] } }
      - { name: three, kind: noop }
`,
  "large results by reference": `
workflow:
  - step: a
    tool: { kind: noop, result: { big: "{{ 'x' ~ ('y' * 300) }}", n: 4 } }
    spec: { result: { inline_max_bytes: 100 } }
    next: { arcs: [{ step: b, when: "{{ (a.big | length) > 300 }}", set: { size: "{{ a.big | length }}" } }] }
  - { step: b, tool: { kind: noop, result: { n: "{{ a.n }}", size: "{{ size }}", tail: "{{ a.big | last }}" } } }
`,
  "pages joined by a manifest": `
workflow:
  - step: a
    tool:
      - page:
          kind: noop
          flaky: 1
          result: { items: ["{{ page.n | default(0) }}"], n: "{{ page.n | default(0) + 1 }}", big: "${"z".repeat(60)}" }
          spec:
            result: { inline_max_bytes: 100, accumulate: { strategy: concat, merge_path: $.items } }
            policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: 0.2 } }] }
      - more: { kind: noop, result: {}, spec: { policy: { rules: [{ when: "{{ page.n < 4 }}", then: { do: jump, to: page } }] } } }
    next: { arcs: [{ step: b, when: "{{ a.page | length == 4 }}" }] }
  - { step: b, tool: { kind: noop, result: { all: "{{ a.page }}" } } }
`,
  "loop with results in parts": `
workflow:
  - step: each
    loop: { in: 6, iterator: n, spec: { mode: parallel, max_in_flight: 4 } }
    tool: { kind: noop, result: { n: "{{ n }}", big: "${"z".repeat(20_000)}" } }
    next: { arcs: [{ step: end, when: "{{ output.data[0].n == 0 }}" }] }
  - { step: end, tool: { kind: noop, result: { count: "{{ each.results | length }}", third: "{{ each.results[3].n }}" } } }
`,
  "sub-playbook and final step": `
executor: { spec: { final_step: tidy } }
workflow:
  - { step: a, tool: { kind: playbook, path: other, input: { n: 5 } }, next: [b, c] }
  - { step: b, tool: { kind: noop, result: { n: "{{ a.input.n }}" } } }
  - { step: c }
  - { step: tidy, tool: { kind: noop, result: { n: "{{ b.n }}", child: "{{ a.child }}" } } }
`,
  "tasks that tell how far they are": `
workflow:
  - { step: a, tool: { kind: noop, tells: 5, result: { n: 1 } }, next: each }
  - step: each
    loop: { in: 4, iterator: n, spec: { mode: parallel, policy: { exec: local } } }
    tool:
      kind: noop
      tells: 3
      flaky: 1
      result: { v: "{{ n + a.n }}" }
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: 0.2 } }] } }
    next: end
  - { step: end, tool: { kind: noop, tells: 5, result: { last: "{{ each.results[3].v }}" } } }
`,
  "parallel loop with shared commands": `
workflow:
  - step: each
    loop: { in: 19, iterator: n, spec: { mode: parallel, max_in_flight: 16 } }
    tool:
      kind: noop
      flaky: "{{ 1 if n % 5 == 0 else 0 }}"
      result: { n: "{{ n }}", seen: "{{ count | default(0) }}" }
      set: { ctx.count: 1 }
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: 0.2 } }] } }
    set: { ctx.all: "{{ output.data | map(attribute='n') | list }}" }
    next: end
  - { step: end, tool: { kind: noop, result: { all: "{{ all }}", last: "{{ each.results[18].n }}" } } }
`,
  waits: `
workflow:
  - { step: start, tool: { kind: noop, result: { n: 1 } }, next: [pause, each] }
  - { step: pause, tool: { kind: wait, for: 3s }, set: { ctx.how: "{{ pause.outcome }}" }, next: join }
  - step: each
    loop: { in: [1, 20, 5, 0], iterator: seconds, spec: { mode: parallel, max_in_flight: 3 } }
    tool: { kind: wait, for: "{{ seconds }}" }
    next: { arcs: [{ step: join, when: "event.name == 'loop.done'" }] }
  - step: join
    tool:
      kind: wait
      for: 1h
      timeout: 2
      spec: { policy: { rules: [{ when: "{{ output.error.code == 'WAIT_TIMEOUT' }}", then: { do: retry, attempts: 2, delay: 0 } }] } }
    next: { arcs: [{ step: limited, when: "event.name == 'step.failed'", set: { code: "{{ output.error.code }}" } }] }
  - step: limited
    spec: { timeout: 4 }
    tool: { kind: wait, for: 1d }
    next: { arcs: [{ step: end, when: "event.name == 'step.failed'", set: { limit: "{{ output.error.code }}" } }] }
  - { step: end, tool: { kind: noop, result: { how: "{{ how }}", done: "{{ each.stats.success }}", code: "{{ code }}", limit: "{{ limit }}" } } }
`,
  signals: `
workload: { least: 2 }
workflow:
  - { step: start, tool: { kind: noop, result: { n: 1 } }, next: [one, each, late] }
  - { step: one, tool: { kind: wait, signal: go, when: "{{ signal.data.n >= least }}" }, set: { ctx.n: "{{ one.data.n }}" }, next: join }
  - step: each
    loop: { in: [a, b, c], iterator: key, spec: { mode: parallel, max_in_flight: 2 } }
    tool: { kind: wait, signal: item, key: "{{ key }}", timeout: 1000000 }
    next: { arcs: [{ step: join, when: "event.name == 'loop.done'" }] }
  - { step: late, tool: { kind: wait, for: 6s }, next: [later] }
  - { step: later, tool: { kind: wait, signal: late }, next: join }
  - { step: join, tool: { kind: wait, signal: never, timeout: 3, on_timeout: continue }, next: [end] }
  - { step: end, tool: { kind: noop, result: { n: "{{ n }}", items: "{{ each.results | map(attribute='data') | list }}", how: "{{ join.outcome }}" } } }
`,
  "retries that are parked": `
workflow:
  - { step: start, tool: { kind: noop, result: { n: 1 } }, next: [piped, each, limited] }
  - step: piped
    tool:
      - { name: one, kind: noop, result: { v: 3 }, set: { x: "{{ output.v + 1 }}" } }
      - name: two
        kind: noop
        flaky: 2
        result: { w: "{{ x + one.v }}" }
        spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 3, backoff: fixed, delay: 12, set: { ctx.tried: "{{ _attempt }}" } } }] } }
    next: join
  - step: each
    loop: { in: 3, iterator: i, spec: { mode: parallel, max_in_flight: 2, policy: { exec: distributed } } }
    tool:
      kind: noop
      flaky: 1
      result: { square: "{{ i * i }}" }
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: 10.001 } }] } }
    next: { arcs: [{ step: join, when: "event.name == 'loop.done'" }] }
  - step: limited
    spec: { timeout: 20 }
    tool: { kind: noop, fail: true, spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 9, backoff: fixed, delay: 3600 } }] } } }
    next: { arcs: [{ step: join, when: "event.name == 'step.failed'", set: { why: "{{ output.error.code }}" } }] }
  - { step: join, tool: { kind: noop, result: { w: "{{ piped.two.w }}", tried: "{{ tried }}", last: "{{ each.results[2].square }}", why: "{{ why }}" } } }
`,
  "approvals, and retries that are parked": `
workflow:
  - { step: start, tool: { kind: noop, result: { n: 1 } }, next: [ask, each, flaky] }
  - step: ask
    tool: { kind: wait, approval: { title: "Go on?", remind_every: 4s, escalate: { after: 9s, to: { roles: [heads] } } }, timeout: 15, on_timeout: continue }
    set: { ctx.how: "{{ ask.outcome }}" }
    next: join
  - step: each
    loop: { in: [6, 14], iterator: seconds, spec: { mode: parallel } }
    tool: { kind: wait, approval: { title: "{{ seconds }}?", remind_every: 5s }, timeout: "{{ seconds }}", on_timeout: continue }
    next: { arcs: [{ step: join, when: "event.name == 'loop.done'" }] }
  - step: flaky
    tool:
      kind: noop
      flaky: 2
      result: { n: "{{ start.n + 1 }}" }
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 3, delay: 12 } }] } }
    next: join
  - { step: join, tool: { kind: wait, for: 2s }, next: end }
  - { step: end, tool: { kind: noop, result: { how: "{{ how }}", asked: "{{ each.results | map(attribute='outcome') | list }}", n: "{{ flaky.n }}" } } }
`,
  "people who decide": `
workflow:
  - { step: draft, tool: { kind: noop, result: { n: "{{ (n | default(0)) + 1 }}" } }, set: { ctx.n: "{{ draft.n }}" }, next: ask }
  - step: ask
    tool: { kind: wait, approval: { title: "{{ n }}", required: 2, remind_every: 4s, escalate: { after: 9s, to: { roles: [heads] } } } }
    next: { arcs: [{ step: draft, when: "{{ ask.outcome == 'rejected' }}" }, { step: each, when: "{{ ask.outcome == 'approved' }}" }] }
  - step: each
    loop: { in: [3, 4], iterator: title, spec: { mode: parallel } }
    tool: { kind: wait, approval: { title: "{{ title }}", required: 3 } }
    next: { arcs: [{ step: end, when: "event.name == 'loop.done'" }] }
  - { step: end, tool: { kind: noop, result: { n: "{{ n }}", how: "{{ ask.outcome }}", all: "{{ each.results | map(attribute='outcome') | list }}" } } }
`,
  "calls in a loop, of calls, and one that fails": `
workflow:
  - { step: start, tool: { kind: noop, result: { n: 2 } }, set: { ctx.n: "{{ start.n }}" }, next: [each, deep, bad] }
  - step: each
    loop: { in: 3, iterator: i, spec: { mode: parallel, max_in_flight: 2 } }
    tool: { kind: playbook, path: other, input: { n: "{{ i * n }}" } }
    next: { arcs: [{ step: join, when: "event.name == 'loop.done'" }] }
  - { step: deep, tool: { kind: playbook, path: caller, input: { n: "{{ start.n }}" } }, next: join }
  - step: bad
    tool: { kind: playbook, path: failing, input: { n: "{{ n }}" } }
    next: { arcs: [{ step: join, when: "event.name == 'step.failed'", set: { why: "{{ output.error.code }}" } }] }
  - step: join
    tool: { kind: noop, result: { all: "{{ each.results | map(attribute='input') | list }}", deep: "{{ deep.sum }}", why: "{{ why }}" } }
`,
};

/** What the executions of a playbook are sent: each signal once, in any order. */
const SIGNALS: Readonly<Record<string, readonly Signal[]>> = {
  signals: [
    { name: "go", data: { n: 1 } },
    { name: "go", data: { n: 2 } },
    ...["a", "b", "c"].map((key) => ({ name: "item", key, data: `of ${key}` })),
    { name: "late", data: null },
  ].map((signal, index) => ({ ...signal, id: `signal-${index}` })),
};

/** What simulated playbooks call, by path. */
const CALLED: Readonly<Record<string, string>> = {
  other: `
workload: { n: 0 }
workflow:
  - { step: a, tool: { kind: noop, result: { n: "{{ n }}" } }, next: end }
  - { step: end, tool: { kind: noop, result: { input: { n: "{{ a.n }}" }, child: other } } }
`,
  caller: `
workload: { n: 0 }
workflow:
  - { step: a, tool: { kind: playbook, path: other, input: { n: "{{ n + 1 }}" } }, next: end }
  - { step: end, tool: { kind: noop, result: { sum: "{{ a.input.n + n }}" } } }
`,
  failing: `
workload: { n: 0 }
workflow:
  - { step: a, tool: { kind: noop, result: { n: "{{ n }}" } }, next: b }
  - { step: b, tool: { kind: noop, fail: true } }
`,
};

/** All of them. */
export const PLAYBOOKS: readonly Simulated[] = Object.entries(TEXTS).map(([name, text], index) => ({
  name,
  path: `simulated/${index}`,
  isRacy: name === "unhandled failure",
  signals: SIGNALS[name] ?? [],
  hasPeople: name === "people who decide",
  rows: text.includes("cursor:") ? [1, 2, 3, 4, 5].map((id) => ({ id })) : [],
}));

/** Compiled once: what every server and worker would come to from the text. By catalog id. */
const PROGRAMS = new Map<string, CommandProgram>(
  [...Object.values(TEXTS), ...Object.values(CALLED)].map((text, index) => {
    const path = PLAYBOOKS[index]?.path ?? Object.keys(CALLED)[index - PLAYBOOKS.length] ?? "";
    return [String(index + 1), { program: compile(text), file: `${path}@1`, path, version: 1 }];
  }),
);

/** The catalog id of the playbook at a path. */
export function idOfPlaybook(path: string): string {
  const found = [...PROGRAMS].find(([, program]) => program.path === path);
  if (found === undefined) throw new Error(`There is no simulated playbook at '${path}'`);
  return found[0];
}

/** The compiled playbook with a catalog id. */
export function programOf(catalogId: string): CommandProgram {
  const found = PROGRAMS.get(catalogId);
  if (found === undefined) throw new Error(`There is no catalog entry ${catalogId}`);
  return found;
}
