import type { SeenWorker, WaitingCommands } from "../../repositories/doctor/stuck-work.ts";
import type { Finding } from "../../schema/api/doctor.ts";
import { isOfOtherPool } from "../../schema/rules/pool-label.ts";
import { counted, finding, shellWord } from "./finding.ts";
import { pairs, poolAdvice } from "./pool-advice.ts";

/** Why commands wait longer than they should. */
export type WaitingReason = "no_worker" | "no_kind" | "no_labels" | "no_both" | "busy" | "unnoticed";

/**
 * Why commands with these kinds and labels wait, judged by the known workers. `unnoticed`: a worker could run them and has free
 * slots, so the notification was lost, and publishing it again helps.
 */
export function whyWaiting(
  { kinds, labels }: Pick<WaitingCommands, "kinds" | "labels">,
  workers: readonly Pick<SeenWorker, "status" | "isSilent" | "capabilities" | "labels" | "held" | "capacity">[],
): WaitingReason {
  const ready = workers.filter(
    (worker) => worker.status === "ready" && !worker.isSilent && !isOfOtherPool(worker.labels, labels),
  );
  if (ready.length === 0) return "no_worker";
  const ofKind = ready.filter(({ capabilities }) => kinds.every((kind) => capabilities.includes(kind)));
  if (ofKind.length === 0) return "no_kind";
  const wanted = Object.entries(labels ?? {});
  const hasLabels = (worker: Pick<SeenWorker, "labels">) =>
    wanted.every(([name, value]) => worker.labels[name] === value);
  if (!ready.some(hasLabels)) return "no_labels";
  const able = ofKind.filter(hasLabels);
  if (able.length === 0) return "no_both";
  return able.every(({ held, capacity }) => held >= capacity) ? "busy" : "unnoticed";
}

/** True if none of the known workers can ever run them. */
export function isOutOfReach(reason: WaitingReason): boolean {
  return reason !== "busy" && reason !== "unnoticed";
}

/** Commands that no worker takes: the reason, and what helps. */
export function waitingFindings(waiting: readonly WaitingCommands[], workers: readonly SeenWorker[]): Finding[] {
  return waiting.map((group) => {
    const reason = whyWaiting(group, workers);
    const { what, why, todo, command } = { ...WORDS[reason](group), ...poolAdvice(reason, group) };
    const commands = counted(group.count, "command");
    return finding({
      check: "waiting_commands",
      // Work that waits its turn is no fault; that it waits for so long is worth knowing.
      level: reason === "busy" ? "notice" : "anomaly",
      what: `${commands} of ${counted(group.executionIds.length, "execution")} wait${group.count === 1 ? "s" : ""}: ${what}`,
      since: group.since,
      why,
      todo,
      command,
      count: group.count,
      executionIds: group.executionIds,
    });
  });
}

interface Words {
  what: string;
  why: string;
  todo: string;
  command: string;
}

const WORDS: Readonly<Record<WaitingReason, (group: WaitingCommands) => Words>> = {
  no_worker: () => ({
    what: "no worker is ready",
    why: "Nothing runs until there is a worker.",
    todo: "Start a worker.",
    command: "flow serve --role=worker",
  }),
  no_kind: ({ kinds }) => ({
    what: `no ready worker runs all of: ${kinds.join(", ")}`,
    why: "These executions stand still until there is such a worker.",
    todo: "Start a worker that runs these kinds; FLOW_WORKER_TOOLS says which ones a worker runs.",
    command: `FLOW_WORKER_TOOLS=${shellWord(kinds.join(","))} flow serve --role=worker`,
  }),
  no_labels: ({ labels }) => ({
    what: `no ready worker has the labels ${pairs(labels)}`,
    why: "These executions stand still until there is such a worker.",
    todo: "Start a worker with these labels, or take them out of the playbook.",
    command: `FLOW_WORKER_LABELS=${shellWord(pairs(labels))} flow serve --role=worker`,
  }),
  no_both: ({ kinds, labels }) => ({
    what: `workers with the labels ${pairs(labels)} do not run ${kinds.join(", ")}, and those that do lack the labels`,
    why: "These executions stand still until one worker has both.",
    todo: "Start a worker that has both.",
    command: `FLOW_WORKER_TOOLS=${shellWord(kinds.join(","))} FLOW_WORKER_LABELS=${shellWord(pairs(labels))} flow serve --role=worker`,
  }),
  busy: () => ({
    what: "every worker that could take them is full",
    why: "The work takes its turn, and longer than it should.",
    todo: "Start further workers, or raise FLOW_WORKER_CAPACITY where they idle.",
    command: "flow serve --role=worker",
  }),
  unnoticed: () => ({
    what: "workers that could take them have room",
    why: "Their notification was lost, or the server does not look for what it missed.",
    todo: "Have the notification published again.",
    command: "flow-doctor repair trigger-reaper",
  }),
};
