import type { Reading } from "../../repositories/doctor/read-snapshot.ts";
import {
  leftCommands,
  motionlessExecutions,
  openCounts,
  overdueExecutions,
  seenWorkers,
  strandedHeld,
  unprocessedBatches,
  waitingCommands,
} from "../../repositories/doctor/stuck-work.ts";
import { EXECUTIONS_NAMED_MAX } from "../../schema/api/doctor.ts";
import { isInServer } from "../../schema/rules/pool-label.ts";
import { type CheckResult, counted, finding, shellWord } from "./finding.ts";
import { type DoctorLimits, FINDINGS_MAX, ROWS_MAX } from "./limits.ts";
import { isOutOfReach, waitingFindings, whyWaiting } from "./waiting.ts";

/*
 * The checks of executions, commands, workers and batches (interface specification, Commands and Doctor): what stands still,
 * since when, and what gets it moving.
 */

/** Commands that no worker takes. */
export async function checkWaiting(reading: Reading, { staleMs }: DoctorLimits): Promise<CheckResult> {
  const workers = await seenWorkers(reading, staleMs, ROWS_MAX);
  const limits = { staleMs: 0, rowsMax: ROWS_MAX, executionsMax: EXECUTIONS_NAMED_MAX };
  const waiting = await waitingCommands(reading, limits);
  // A command that no worker may take is stuck at once; any other gets some time.
  const findings = waitingFindings(
    waiting.filter((group) => group.ageMs >= staleMs || isOutOfReach(whyWaiting(group, workers))),
    workers,
  );
  const ready = workers.filter(
    ({ status, isSilent, labels }) => status === "ready" && !isSilent && !isInServer(labels),
  );
  return { findings: findings.slice(0, FINDINGS_MAX), counts: { workers_ready: ready.length } };
}

/** Commands held by a lost worker, or held for too long. */
export async function checkStale(reading: Reading, { staleMs, hardTimeoutMs }: DoctorLimits): Promise<CheckResult> {
  const groups = await strandedHeld(reading, { staleMs, hardTimeoutMs, executionsMax: EXECUTIONS_NAMED_MAX });
  const findings = groups.slice(0, FINDINGS_MAX).map((group) => {
    const { worker, reason, count, leaseExpiresAt, isFree } = group;
    const has = counted(count, "command");
    const lease = isFree ? "" : ` Others may take them from ${leaseExpiresAt.toISOString()} on, when their leases end.`;
    const shared = { since: group.since, count, executionIds: group.executionIds };
    const sweep = "flow-doctor repair trigger-reaper";
    return reason === "gone"
      ? finding({
          ...shared,
          check: "stale_commands",
          what: `The worker ${worker} is gone and holds ${has}`,
          why: `No worker runs its commands: the executions stand still.${lease}`,
          todo: "See that another worker is ready, and have the commands offered to it.",
          command: sweep,
        })
      : finding({
          ...shared,
          check: "stale_commands",
          what: `The worker ${worker} lives and has held ${has} for more than ${hardTimeoutMs / 1_000} s`,
          why: `A tool that never ends keeps its execution and a slot of the worker.${lease}`,
          todo: "Look at what it does; cancel the execution where nothing will come of it.",
          command: `flow cancel ${group.executionIds[0] ?? "<execution_id>"} --reason 'held for too long'`,
        });
  });
  return { findings };
}

/** Workers without a heartbeat. One without commands does no harm and is only a note. */
export async function checkWorkers(reading: Reading, { staleMs }: DoctorLimits): Promise<CheckResult> {
  const workers = await seenWorkers(reading, staleMs, ROWS_MAX);
  const silent = workers.filter(({ status, isSilent }) => status !== "offline" && isSilent);
  const findings = silent.slice(0, FINDINGS_MAX).map(({ name, held, heartbeatAt }) =>
    finding({
      check: "workers_gone",
      level: held > 0 ? "anomaly" : "notice",
      what: `The worker ${name} has sent no heartbeat; it holds ${counted(held, "command")}`,
      since: heartbeatAt,
      why: held > 0 ? "What it holds stands still until another worker gets it." : "There is one worker less.",
      todo: "Start it again if it is missed. It was killed or cut off: one that stops in order signs off.",
      command: `FLOW_WORKER_NAME=${shellWord(name)} flow serve --role=worker`,
    }),
  );
  return { findings, counts: { workers_silent: silent.length } };
}

/** Workers that run the code of tasks beside themselves. What an operator has chosen is worth knowing too. */
export async function checkIsolation(reading: Reading, { staleMs }: DoctorLimits): Promise<CheckResult> {
  const workers = await seenWorkers(reading, staleMs, ROWS_MAX);
  const open = workers.flatMap(({ name, status, isSilent, capabilities, about }) => {
    const isolation = String(about["isolation"] ?? "");
    const runsCode = capabilities.some((kind) => kind === "python" || kind === "shell");
    return status === "ready" && !isSilent && runsCode && isolation.startsWith("none") ? [{ name, isolation }] : [];
  });
  const findings = open.slice(0, FINDINGS_MAX).map(({ name, isolation }) =>
    finding({
      check: "unisolated_workers",
      level: "notice",
      what: `The worker ${name} runs python and shell tasks without a sandbox: ${isolation}`,
      since: null,
      why: "Whoever may register a playbook can read what this worker can: its token, its files, other tasks.",
      todo: "Install bubblewrap there and let the worker's user make user namespaces; FLOW_TASK_ISOLATION=strict refuses to start without.",
      command: "flow workers --wide",
    }),
  );
  return { findings, counts: { workers_unisolated: open.length } };
}

/** Executions that nothing will move, and those that are past their time. */
export async function checkExecutions(reading: Reading, { staleMs }: DoctorLimits): Promise<CheckResult> {
  const still = await motionlessExecutions(reading, staleMs, FINDINGS_MAX);
  const overdue = await overdueExecutions(reading, staleMs, FINDINGS_MAX);
  return {
    findings: [
      ...still.map(({ executionId, path, status, since }) =>
        finding({
          check: "stuck_executions",
          what: `Execution ${executionId} of ${path} is ${status}, and nothing is open that could move it`,
          since,
          why: "It will never end, and its callers wait for ever.",
          todo: "Keep its events for a report of this fault, cancel it, and start it again.",
          command: `flow events ${executionId} --json > ${executionId}.json; flow cancel ${executionId} --reason 'stuck'`,
          executionIds: [executionId],
        }),
      ),
      ...overdue.map(({ executionId, path, since }) =>
        finding({
          check: "overdue_executions",
          what: `Execution ${executionId} of ${path} is open past its deadline`,
          since,
          why: "Servers end what is overdue within seconds: none of them does its background work.",
          todo: "See that a server runs, and what its log says of 'end overdue executions'.",
          command: "flow-doctor reachability",
          executionIds: [executionId],
        }),
      ),
    ],
  };
}

/** Batches that no server decides. */
export async function checkBatches(reading: Reading, { staleMs }: DoctorLimits): Promise<CheckResult> {
  const limits = { staleMs, limit: ROWS_MAX, executionsMax: EXECUTIONS_NAMED_MAX };
  const { count, since, executionIds } = await unprocessedBatches(reading, limits);
  if (count === 0) return { findings: [] };
  return {
    findings: [
      finding({
        check: "unprocessed_batches",
        what: `${counted(count, "batch", "batches")} of events ${count === 1 ? "was" : "were"} accepted and not worked out`,
        since,
        why: "These events have no effect yet: no server has taken over what another one has left.",
        todo: "See that a server runs, and what its log says of 'recover batches'. At its start it works out what is left.",
        command: "flow serve --role=server",
        count,
        executionIds,
      }),
    ],
  };
}

/** Commands that their execution has outlived. */
export async function checkLeft(reading: Reading): Promise<CheckResult> {
  const left = await leftCommands(reading, ROWS_MAX);
  const [first] = left;
  if (first === undefined) return { findings: [] };
  return {
    findings: [
      finding({
        check: "left_commands",
        what: `${counted(left.length, "command")} of executions that have ended ${left.length === 1 ? "is" : "are"} open`,
        since: first.endedAt,
        why: "An end closes every command with it, in one statement: rows were changed by hand, or this is a fault of flow.",
        todo: "Keep the events for a report. Reports of these commands are refused, so nothing comes of them.",
        command: `flow events ${first.executionId} --json > ${first.executionId}.json`,
        count: left.length,
        executionIds: [...new Set(left.map(({ executionId }) => executionId))],
      }),
    ],
  };
}

/** How much is open, and how long the queue is in time. */
export async function countOpen(reading: Reading): Promise<CheckResult> {
  const { executions, paused, pending, held, batches, oldestPendingSeconds } = await openCounts(reading, 10 * ROWS_MAX);
  return {
    findings: [],
    counts: {
      executions_open: executions,
      executions_paused: paused,
      commands_pending: pending,
      commands_held: held,
      batches_open: batches,
      queue_age_seconds: Math.round(oldestPendingSeconds * 1_000) / 1_000,
    },
  };
}
