import assert from "node:assert/strict";
import { test } from "node:test";
import { failed } from "../../../src/schema/words/outcome.ts";
import { setup } from "../support/bench.ts";
import { ok } from "../support/scripted-tools.ts";

// Language document, section 5.2: in a step's set and arcs `output` is the envelope, http, pg, py and meta among it.

const notFound = {
  ...failed("not_found", "HTTP_404", "no such page", { status: 404 }),
  data: { status_code: 404, data: { why: "gone" } },
  http: { status: 404, headers: { "x-id": "7" } },
};

test("arcs read the status and headers of the answer that failed the step", async (t) => {
  const ran = await setup(t, { tools: { a: [notFound] } }).completed(`
workflow:
  - step: a
    tool: { kind: http, url: x }
    next:
      spec: { mode: exclusive }
      arcs:
        - step: gone
          when: "event.name == 'step.failed' and output.http.status == 404"
          args: { id: "{{ output.http.headers['x-id'] }}", why: "{{ output.data.why }}", run: "{{ output.meta.attempt }}" }
  - step: gone
    tool: { kind: noop, result: { id: "{{ id }}", why: "{{ why }}", run: "{{ run }}" } }
`);
  assert.deepEqual(await ran.result(), { id: "7", why: "gone", run: 1 });
});

test("of a pipeline the envelope is that of the task that ended it", async (t) => {
  const good = { ...ok({ first: true }), http: { status: 200, headers: {} } };
  const ran = await setup(t, { tools: { one: [good], two: [notFound] } }).completed(`
workflow:
  - step: a
    tool: [{ one: { kind: http, url: x } }, { two: { kind: http, url: x } }]
    next:
      spec: { mode: exclusive }
      arcs: [{ step: end, when: "event.name == 'step.failed'", args: { status: "{{ output.http.status }}" } }]
  - step: end
    tool: { kind: noop, result: { status: "{{ status }}" } }
`);
  assert.deepEqual(await ran.result(), { status: 404 });
});

test("a sensitive result keeps nothing of its envelope, an iteration none either", async (t) => {
  const good = { ...ok({ token: "s3cret" }), http: { status: 200, headers: { "set-cookie": "s3cret" } } };
  const ran = await setup(t, { tools: { a: [good], b: [good] } }).completed(`
workflow:
  - step: a
    tool: { kind: http, url: x, spec: { result: { sensitive: true } } }
    next: { spec: { mode: exclusive }, arcs: [{ step: b }] }
  - step: b
    loop: { in: [1], iterator: i }
    tool: { kind: http, url: x }
`);
  assert.deepEqual(
    ran.of("task.done").map(({ result }) => result?.about),
    [undefined, undefined],
  );
});
