import postgres from "postgres";

/** How large the executions are, and how many. */
export interface Sizes {
  /** Executions of one step in the list. */
  executions: number;
  /** Of the loop. */
  iterations: number;
  /** Rounds of a circle of 1,000 steps: some 5,500 events each. */
  turns: number;
}

/** Ids of the executions that are looked at. */
export interface Filled {
  loop: string;
  long: string;
  /** How many events the long one has. */
  events: number;
  /** It runs for longer than anyone looks at it, and writes a line every second. */
  live: string;
}

const STEPS = 1_000;
/** Ids of one millisecond (`platform/system/ids`): a copy began so much earlier than the one before it. */
const IDS_PER_MS = 4_096;
/** Copies are this far apart, milliseconds: 50,000 of them fill half a day. */
const APART_MS = 1_000;
const WAIT_MS = 30_000;

const header = (name: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: bench/${name}}\n`;

const SHORT = `${header("page-short")}workflow:\n  - {step: start, tool: {kind: noop, result: {rows: 3}}}\n`;

const LOOP = `${header("page-loop")}workload: {n: 1}
workflow:
  - step: work
    loop: {in: "{{ workload.n }}", iterator: i, spec: {mode: parallel, max_in_flight: 1000}}
    tool: {kind: noop, result: {number: "{{ i }}"}}
`;

const LONG = `${header("page-long")}workload: {n: 1}
workflow:${Array.from({ length: STEPS }, (_, index) => {
  const isEnd = index === STEPS - 1;
  const set = isEnd ? '\n    set: {turns: "{{ (turns | default(0)) + 1 }}"}' : "";
  const next = isEnd ? '{step: s0, when: "{{ turns < workload.n }}"}, {step: last}' : `{step: s${index + 1}}`;
  return `\n  - step: s${index}\n    tool: {kind: noop, result: {number: ${index}}}${set}\n    next: {arcs: [${next}]}`;
}).join("")}
  - {step: last, tool: {kind: noop}}
`;

const LIVE = `${header("page-live")}workflow:
  - step: tick
    tool:
      kind: python
      code: |
        import time
        for number in range(3600):
            print("tick", number, flush=True)
            time.sleep(1)
`;

/** Fills a service through its API; the many short executions are copies of one, made in the database. */
export async function fillService(of: { url: string; databaseUrl: string }, sizes: Sizes): Promise<Filled> {
  const post = (path: string, body: unknown) => posted(`${of.url}${path}`, body);
  for (const content of [SHORT, LOOP, LONG, LIVE]) await post("/api/catalog/register", { content });
  const run = async (path: string, workload: object = {}) => {
    const { execution_id: id } = await post("/api/execute", { path, workload });
    await ended(of.url, String(id));
    return String(id);
  };
  const short = await run("bench/page-short");
  const loop = await run("bench/page-loop", { n: sizes.iterations });
  const long = await run("bench/page-long", { n: sizes.turns });
  const { execution_id: live } = await post("/api/execute", { path: "bench/page-live" });
  const sql = postgres(of.databaseUrl, { max: 1 });
  try {
    await sql`
      insert into flow.execution (execution_id, catalog_id, path, version, status, progress, last_event_id, root_execution_id, result,
        started_at, ended_at)
      select execution_id - shift, catalog_id, path, version, status, progress, last_event_id - shift, root_execution_id - shift, result,
        started_at - copy * ${APART_MS} * interval '1 ms', ended_at - copy * ${APART_MS} * interval '1 ms'
      from flow.execution
      cross join lateral (select copy, copy::bigint * ${APART_MS * IDS_PER_MS} as shift from generate_series(1, ${sizes.executions}) as copy) as copies
      where execution_id = ${short}`;
    await sql`analyze`;
    const [row] = await sql<[{ events: number }]>`
      select sum(coalesce(events, 1))::int as events from flow.event_log where execution_id = ${long}`;
    return { loop, long, events: row.events, live: String(live) };
  } finally {
    await sql.end();
  }
}

async function ended(url: string, id: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/api/executions/${id}/result?wait_ms=${WAIT_MS}`);
    const { status } = (await response.json()) as { status?: string };
    if (status === "COMPLETED") return;
    if (status === "FAILED" || status === "CANCELLED") throw new Error(`execution ${id} is ${status}`);
  }
}

async function posted(address: string, body: unknown): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${address}: ${JSON.stringify(answer)}`);
  return answer;
}
