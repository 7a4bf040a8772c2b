import assert from "node:assert/strict";
import { test } from "node:test";
import type { SeenWorker, WaitingCommands } from "../../src/repositories/doctor/stuck-work.ts";
import { type WaitingReason, waitingFindings, whyWaiting } from "../../src/services/diagnosis/waiting.ts";

const WORKER: SeenWorker = {
  name: "w",
  status: "ready",
  capacity: 4,
  held: 0,
  labels: { zone: "a" },
  about: {},
  capabilities: ["http", "noop"],
  heartbeatAt: new Date(0),
  isSilent: false,
};

const worker = (more: Partial<SeenWorker>): SeenWorker => ({ ...WORKER, ...more });

const CASES: [
  why: WaitingReason,
  about: string,
  workers: SeenWorker[],
  kinds: string[],
  labels: Record<string, string> | null,
][] = [
  ["no_worker", "there is no worker", [], ["http"], null],
  ["no_worker", "the only worker is silent", [worker({ isSilent: true })], ["http"], null],
  ["no_worker", "the only worker drains", [worker({ status: "draining" })], ["http"], null],
  ["no_worker", "the only worker is of a pool", [worker({ labels: { "flow.pool": "team" } })], ["http"], null],
  ["unnoticed", "its pool has room", [worker({ labels: { "flow.pool": "a" } })], ["http"], { "flow.pool": "a" }],
  ["no_labels", "no worker is of its pool", [WORKER], ["http"], { "flow.pool": "a" }],
  ["no_kind", "no worker runs the kind", [WORKER], ["shell"], null],
  [
    "no_kind",
    "no worker runs all kinds of the step",
    [WORKER, worker({ capabilities: ["shell"] })],
    ["http", "shell"],
    null,
  ],
  ["no_labels", "no worker has the labels", [WORKER], ["http"], { gpu: "yes" }],
  ["no_labels", "the label has another value", [WORKER], ["http"], { zone: "b" }],
  [
    "no_both",
    "one worker has the kind and another one the labels",
    [WORKER, worker({ capabilities: ["shell"], labels: { gpu: "yes" } })],
    ["http"],
    { gpu: "yes" },
  ],
  ["busy", "whoever could take them is full", [worker({ held: 4 }), worker({ capabilities: [] })], ["http"], null],
  ["unnoticed", "a worker that could take them has room", [worker({ held: 4 }), WORKER], ["http"], { zone: "a" }],
];
for (const [why, about, workers, kinds, labels] of CASES) {
  test(`commands wait because ${about}: ${why}`, () => {
    assert.equal(whyWaiting({ kinds, labels }, workers), why);
  });
}

const GROUP: WaitingCommands = {
  kinds: ["shell"],
  labels: { zone: "it's; rm -rf" },
  count: 3,
  since: new Date("2026-11-21T08:00:00.000Z"),
  ageMs: 90_000,
  executionIds: ["7", "8"],
};

test("the command of a finding can be copied whatever a label holds", () => {
  const [found] = waitingFindings([{ ...GROUP, kinds: ["http"] }], [WORKER]);
  assert.equal(found?.command, `FLOW_WORKER_LABELS='zone=it'\\''s; rm -rf' flow serve --role=worker`);
});

const TOKEN = "FLOW_WORKER_TOKEN_FILE=FILE";
for (const [about, kinds, labels, workers, what, command] of [
  [
    "a server, and its step has labels",
    ["http"],
    { "flow.pool": "@server", gpu: "yes" },
    [WORKER, worker({ labels: { "flow.pool": "@server" } })],
    "servers run system playbooks themselves, and none has the labels gpu=yes",
    "flow pools create NAME --paths 'PATH/**' --labels gpu=yes",
  ],
  [
    "a server, of which none has registered",
    ["http"],
    { "flow.pool": "@server" },
    [WORKER],
    "no server is there to run these system playbooks",
    "flow serve --role=server",
  ],
  [
    "a pool without a worker",
    ["http"],
    { "flow.pool": "team" },
    [worker({ labels: { "flow.pool": "other" } })],
    "no ready worker of the pool 'team'",
    `${TOKEN} flow serve --role=worker`,
  ],
  [
    "a pool whose workers lack the label",
    ["http"],
    { "flow.pool": "team", zone: "b" },
    [worker({ labels: { "flow.pool": "team" } })],
    "no ready worker of the pool 'team' has the labels zone=b",
    `${TOKEN} FLOW_WORKER_LABELS=zone=b flow serve --role=worker`,
  ],
  [
    "a pool whose workers do not run the kind",
    ["shell"],
    { "flow.pool": "team" },
    [worker({ labels: { "flow.pool": "team" } })],
    "no ready worker of the pool 'team' runs shell",
    `${TOKEN} FLOW_WORKER_TOOLS=shell flow serve --role=worker`,
  ],
] as [string, string[], Record<string, string>, SeenWorker[], string, string][]) {
  test(`the advice for what waits for ${about}, names no label that makes no worker one of it`, () => {
    const [found] = waitingFindings([{ ...GROUP, kinds, labels }], workers);
    assert.equal(found?.what, `3 commands of 2 executions wait: ${what}`);
    assert.equal(found?.command, command);
  });
}

test("what is busy in a pool is busy as elsewhere", () => {
  const labels = { "flow.pool": "team" };
  const [found] = waitingFindings([{ ...GROUP, kinds: ["http"], labels }], [worker({ labels, held: 4 })]);
  assert.match(found?.what ?? "", /every worker that could take them is full$/);
});

test("a finding says what, since when, why it matters and what to do, and names the executions", () => {
  const [found] = waitingFindings([{ ...GROUP, labels: null }], [WORKER]);
  assert.deepEqual(found, {
    check: "waiting_commands",
    level: "anomaly",
    what: "3 commands of 2 executions wait: no ready worker runs all of: shell",
    since: "2026-11-21T08:00:00.000Z",
    why_it_matters: "These executions stand still until there is such a worker.",
    what_to_do: "Start a worker that runs these kinds; FLOW_WORKER_TOOLS says which ones a worker runs.",
    command: "FLOW_WORKER_TOOLS=shell flow serve --role=worker",
    count: 3,
    execution_ids: ["7", "8"],
  });
});

test("work that waits for its turn is a notice, not an anomaly", () => {
  const [found] = waitingFindings([{ ...GROUP, labels: null, kinds: ["http"] }], [worker({ held: 4 })]);
  assert.equal(found?.level, "notice");
});
