/* Playbooks whose executions the page of one execution is tested with. */

const head = (name: string) => `apiVersion: flow/v2
kind: Playbook
metadata: { name: ${name}, path: page/${name} }
`;

/** Goes around once: the arrow back to its second step is taken as often as the one that leads on. */
const PLAIN = `${head("plain")}workload: { who: world, list: [1, 2, 3] }
workflow:
  - step: greet
    tool: { kind: noop, result: { text: "hello {{ workload.who }}" } }
    next:
      arcs:
        - { step: never, when: "{{ workload.who == 'nobody' }}" }
        - { step: part }
  - step: part
    tool: { kind: noop, result: { said: "{{ greet.text }}", times: "{{ (times | int) + 1 }}" } }
    next:
      arcs:
        - { step: again, when: "{{ part.times < 3 }}" }
  - step: again
    tool: { kind: noop }
    next:
      arcs:
        - { step: part, args: { times: "{{ part.times }}" } }
  - step: never
    tool: { kind: noop }
`;

const FAILING = `${head("failing")}workflow:
  - step: begin
    tool: { kind: noop }
    next: { arcs: [{ step: charge }] }
  - step: charge
    tool:
      kind: python
      code: |
        def total(order):
            return order['price'] * 2
        print('charging', flush=True)
        import time; time.sleep(0.6)
        result = total({})
    next: { arcs: [{ step: afterwards }] }
  - step: afterwards
    tool: { kind: noop }
`;

const LOOP = `${head("loop")}workflow:
  - step: check
    loop: { in: 30, iterator: n, spec: { mode: parallel } }
    tool: { kind: http, url: "http://127.0.0.1:1/{{ n }}", spec: { policy: { rules: [{ when: "{{ n not in [5, 17, 23] }}", then: { do: continue } }] } } }
`;

const BIG = `${head("big")}workflow:
  - step: produce
    tool:
      kind: python
      code: "result = {'rows': [{'id': i, 'name': 'row %d' % i, 'note': 'x' * 40} for i in range(5000)], 'cursor': 'abc'}"
`;

const HOSTILE = `${head("hostile")}workload: { "<b>key</b>": "<script>alert(2)</script>" }
workflow:
  - step: "<i>step</i>"
    tool: { kind: http, url: "http://127.0.0.1:1/<svg onload=alert(3)>" }
`;

const RETRIED = `${head("retried")}workload: { delay: 0, attempts: 2 }
workflow:
  - step: fetch
    tool:
      kind: http
      url: http://127.0.0.1:1/orders
      spec:
        policy:
          rules:
            - when: "{{ outcome.status == 'error' }}"
              then: { do: retry, attempts: "{{ workload.attempts }}", backoff: fixed, delay: "{{ workload.delay }}" }
`;

const UNCLAIMED = `${head("unclaimed")}workflow:
  - step: count
    tool: { kind: duckdb, query: "select 1" }
`;

const CHILD = `${head("child")}workflow:
  - step: work
    tool:
      kind: python
      code: |
        import time
        for number in range(600):
            print('tick', number, flush=True)
            time.sleep(1)
`;

const PARENT = `${head("parent")}workflow:
  - step: call
    tool: { kind: playbook, path: page/child }
`;

const LABELLED = `${head("labelled")}workflow:
  - step: compute
    spec: { labels: { gpu: "yes" } }
    tool: { kind: python, code: "result = 1" }
`;

/** Goes from its step to that step again. */
const ITSELF = `${head("itself")}workflow:
  - step: poll
    tool: { kind: noop, result: { n: "{{ (n | int) + 1 }}" } }
    next:
      arcs:
        - { step: poll, when: "{{ poll.n < 3 }}", args: { n: "{{ poll.n }}" } }
        - { step: done }
  - step: done
    tool: { kind: noop }
`;

/** All of them. */
export const EXECUTION_PLAYBOOKS: readonly string[] = [
  PLAIN,
  FAILING,
  LOOP,
  BIG,
  HOSTILE,
  RETRIED,
  UNCLAIMED,
  LABELLED,
  ITSELF,
  CHILD,
  PARENT,
];
