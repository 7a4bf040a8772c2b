import { POOL_LABEL, poolOf, SERVER_POOL } from "../../schema/rules/pool-label.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { shellWord } from "./finding.ts";

/** What no worker has that commands of a pool need, and what helps. */
export interface PoolAdvice {
  /** The middle of a sentence: `no ready worker of the pool 'team' has the labels zone=a`. */
  what: string;
  todo: string;
  command: string;
}

/**
 * Advice for commands that a pool alone runs, or the servers themselves; undefined for others. A worker is of a pool by the token that
 * it has: a label of its own does not make it one. `why`: as `whyWaiting` says it.
 */
export function poolAdvice(
  why: string,
  { kinds, labels }: { kinds: readonly string[]; labels: JsonObject | null },
): PoolAdvice | undefined {
  const pool = poolOf(labels);
  if (pool === undefined || !OUT_OF_REACH.includes(why)) return undefined;
  const { [POOL_LABEL]: _, ...own } = labels ?? {};
  const wanted = pairs(own);
  const needs = [
    ...(why === "no_kind" || why === "no_both" ? [`runs ${kinds.join(", ")}`] : []),
    ...(why !== "no_kind" && wanted !== "" ? [`has the labels ${wanted}`] : []),
  ];
  if (pool === SERVER_POOL) return ofServers(needs, wanted);
  const tools = why === "no_kind" || why === "no_both" ? `FLOW_WORKER_TOOLS=${shellWord(kinds.join(","))} ` : "";
  const more = wanted === "" ? "" : `FLOW_WORKER_LABELS=${shellWord(wanted)} `;
  return {
    what: ["no ready worker of the pool", `'${pool}'`, needs.join(" and ")].join(" ").trim(),
    todo: "Start such a worker with the pool's token in a file. 'flow pools rotate' prints a new one.",
    command: `FLOW_WORKER_TOKEN_FILE=FILE ${tools}${more}flow serve --role=worker`,
  };
}

const OUT_OF_REACH = ["no_worker", "no_kind", "no_labels", "no_both"];

function ofServers(needs: readonly string[], wanted: string): PoolAdvice {
  if (needs.length === 0) {
    return {
      what: "no server is there to run these system playbooks",
      todo: "See that a server with FLOW_SERVER_TOKEN runs, and what its log says.",
      command: "flow serve --role=server",
    };
  }
  const labels = wanted === "" ? "" : ` --labels ${shellWord(wanted)}`;
  return {
    what: `servers run system playbooks themselves, and none ${needs.join(" and ")}`,
    todo: "Make a pool of workers for these playbooks, or change them; then start these executions again.",
    command: `flow pools create NAME --paths 'PATH/**'${labels}`,
  };
}

/** Labels as FLOW_WORKER_LABELS has them: `zone=a,gpu=yes`. */
export function pairs(labels: JsonObject | null): string {
  return Object.entries(labels ?? {})
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(",");
}
