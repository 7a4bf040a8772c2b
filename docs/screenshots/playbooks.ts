/** An order's way, with a loop, a condition that is not met, a retry, and a last step that waits for somebody. */
const SETTLE = `apiVersion: flow/v2
kind: Playbook
metadata:
  name: settle orders
  path: shop/settle_orders
  description: Charges the orders of a day, and tells finance when something is left over.
workload: { day: "2026-11-20", orders: 12, slow_seconds: 0, fail: false }
workflow:
  - step: load_orders
    tool:
      kind: python
      args: { day: "{{ workload.day }}", orders: "{{ workload.orders }}" }
      code: |
        def main(day, orders):
            print("loading orders of", day)
            return [{"id": f"{day}-{n:03}", "cents": 1250 + 310 * n} for n in range(orders)]
    next:
      arcs:
        - { step: nothing_to_do, when: "{{ load_orders | length == 0 }}" }
        - { step: charge }
  - step: nothing_to_do
    tool: { kind: noop }
  - step: charge
    loop: { in: "{{ load_orders }}", iterator: order, spec: { mode: parallel, max_in_flight: 4 } }
    tool:
      kind: python
      args: { order: "{{ order }}" }
      code: |
        import time
        def main(order):
            time.sleep(0.15)
            return {"id": order["id"], "charged": order["cents"]}
    next:
      arcs:
        - { step: book, when: "{{ event.name == 'loop.done' }}" }
        - { step: tell_finance, when: "{{ event.name == 'step.failed' }}" }
  - step: tell_finance
    tool: { kind: noop }
  - step: book
    tool:
      kind: python
      args: { seconds: "{{ workload.slow_seconds }}", fail: "{{ workload.fail }}" }
      code: |
        import time
        def main(seconds, fail):
            print("booking the charges")
            if fail: raise RuntimeError("the ledger is closed for 2026-11-20")
            time.sleep(seconds)
            return {"booked": True}
    next: { arcs: [{ step: report }] }
  - step: report
    tool: { kind: noop, result: { orders: "{{ charge.stats.success }}", booked: "{{ book.booked }}" } }
`;

/** Waits for somebody, and for a signal that comes later. */
const SIGN_OFF = `apiVersion: flow/v2
kind: Playbook
metadata: { name: deploy, path: release/deploy, description: Deploys a release once it was signed off. }
workload: { release: "2026.11.3" }
workflow:
  - step: build
    tool: { kind: noop, result: { image: "registry/{{ workload.release }}" } }
    next: { arcs: [{ step: sign_off }] }
  - step: sign_off
    tool: { kind: wait, signal: signed_off, key: "{{ workload.release }}" }
    next: { arcs: [{ step: ship }] }
  - step: ship
    tool: { kind: noop, result: { shipped: "{{ build.image }}" } }
`;

/** People decide, with a form. */
const RELEASE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: release, path: release/publish, description: Publishes a release when two people agree. }
workload: { version: "2026.11.3" }
workflow:
  - step: ask
    tool:
      kind: wait
      approval:
        title: Release {{ workload.version }}?
        description: |
          The changes are in **CHANGELOG.md**. Before you agree:

          - the canary ran for a day without new errors
          - \`billing\` is not in its month-end close
        form:
          type: object
          properties:
            window: { type: string, enum: [now, tonight], description: When it goes out }
            share: { type: number, default: 25, maximum: 100, description: Per cent of the traffic at first }
          required: [window]
        required: 2
        escalate: { after: 4h, to: { roles: [head_of_ops] } }
      timeout: 172800
    next: { arcs: [{ step: publish }] }
  - step: publish
    tool: { kind: noop }
`;

/** Starts by itself: at times, and by deliveries, not all of which it takes. */
const NIGHTLY = `apiVersion: flow/v2
kind: Playbook
metadata: { name: nightly report, path: reports/nightly, description: Sums up a day. }
workflow:
  - { step: sum, tool: { kind: noop, result: { rows: 120 } } }
triggers:
  - { name: nightly, schedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin, jitter: 60s }, overlap: skip, catchup: { mode: last, window: 1d } }
  - { name: often, schedule: { cron: "*/20 * * * *" } }
  - { name: pushed, webhook: { path: reports/pushed, verify: { preset: none }, when: "{{ body.branch == 'main' }}" } }
  - { name: after_settling, execution: { path: "shop/settle_week" } }
  - { name: asked, signal: { name: recalculate } }
`;

/** A week of shops: each is an execution of its own. */
const WEEK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: week, path: shop/settle_week, description: Settles the orders of a week, day by day. }
workload: { days: ["2026-11-16", "2026-11-17", "2026-11-18"] }
workflow:
  - step: days
    loop: { in: "{{ workload.days }}", iterator: day }
    tool: { kind: playbook, path: shop/settle_orders, input: { day: "{{ day }}", orders: 5 } }
`;

/** Months of weeks: three executions deep. */
const MONTH = `apiVersion: flow/v2
kind: Playbook
metadata: { name: month, path: shop/close_month, description: Closes a month, week by week. }
workload: { weeks: 2 }
workflow:
  - step: weeks
    loop: { in: "{{ range(workload.weeks) | list }}", iterator: week }
    tool: { kind: playbook, path: shop/settle_week, input: { days: ["2026-11-0{{ week + 2 }}"] } }
    next: { arcs: [{ step: close }] }
  - step: close
    tool: { kind: noop, result: { closed: true } }
`;

/** A loop of 5,000 items, of which some fail. */
const PRICES = `apiVersion: flow/v2
kind: Playbook
metadata: { name: prices, path: shop/check_prices, description: Checks the price of every article. }
workload: { articles: 5000 }
workflow:
  - step: check
    loop:
      in: "{{ range(workload.articles) | list }}"
      iterator: article
      spec: { mode: parallel, max_in_flight: 64, on_error: { tolerate: 5% } }
    tool: { kind: noop, result: { article: "{{ article }}", share: "{{ 1 / (article % 700) }}" } }
    next: { arcs: [{ step: report, when: "{{ event.name == 'loop.done' }}" }] }
  - step: report
    tool: { kind: noop, result: { checked: "{{ check.stats.success }}", failed: "{{ check.stats.failed }}" } }
`;

/** Tries again, and tries again in a while. */
const LEDGER = `apiVersion: flow/v2
kind: Playbook
metadata: { name: ledger, path: shop/sync_ledger, description: Sends the day's bookings to the ledger. }
workload: { day: "2026-11-20", delay: 300 }
workflow:
  - step: send
    tool:
      kind: python
      args: { day: "{{ workload.day }}" }
      code: |
        def main(day):
            print("sending the bookings of", day)
            raise ConnectionError("the ledger does not answer")
      spec:
        policy:
          rules:
            - when: "{{ output.status == 'error' }}"
              then: { do: retry, attempts: 5, delay: "{{ workload.delay }}" }
`;

/** What the executions of the pictures run. */
export const PLAYBOOKS: readonly string[] = [SETTLE, SIGN_OFF, RELEASE, NIGHTLY, WEEK, MONTH, PRICES, LEDGER];
