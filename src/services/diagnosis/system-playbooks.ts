import type { Reading } from "../../repositories/doctor/read-snapshot.ts";
import { listPlaybooksWithKinds, listPoolPaths } from "../../repositories/doctor/system-playbooks.ts";
import { POOLS_MAX } from "../../repositories/workers/pools.ts";
import { SYSTEM_FOLDERS } from "../../schema/rules/access-rules.ts";
import { SERVER_KINDS, servesPath } from "../../schema/rules/pool-label.ts";
import { KIND_ALIASES, RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { type CheckResult, counted, finding, shellWord } from "./finding.ts";

/** Most playbooks that are read, and that a finding names. */
const PLAYBOOKS_MAX = 200;
const NAMED_MAX = 5;

/** Kinds that run in workers and in no server, in every spelling. */
const OUTSIDE_KINDS: readonly string[] = RUNNABLE_KINDS.filter((kind) => !SERVER_KINDS.includes(kind));
const OUTSIDE = [
  ...OUTSIDE_KINDS,
  ...Object.keys(KIND_ALIASES).filter((alias) => OUTSIDE_KINDS.includes(KIND_ALIASES[alias] ?? "")),
];

/**
 * System playbooks with tasks that no server runs, and that no pool covers: they stop there. Undefined where servers run no system
 * playbooks themselves (`hasOwn`).
 */
export async function checkSystemPlaybooks(reading: Reading, hasOwn: boolean): Promise<CheckResult | undefined> {
  if (!hasOwn) return undefined;
  const query = { folders: SYSTEM_FOLDERS, kinds: OUTSIDE, limit: PLAYBOOKS_MAX };
  const [playbooks, pools] = [await listPlaybooksWithKinds(reading, query), await listPoolPaths(reading, POOLS_MAX)];
  const left = playbooks.filter(({ path }) => !pools.some((paths) => servesPath(paths, path)));
  const [first] = left;
  if (first === undefined) return { findings: [] };
  const named = left.slice(0, NAMED_MAX).map(({ path, kinds }) => `${path} (${kinds.join(", ")})`);
  const more = left.length > named.length ? ` and ${left.length - named.length} more` : "";
  const uncovered = finding({
    check: "system_playbooks",
    level: "notice",
    what: `${counted(left.length, "system playbook")} ${left.length === 1 ? "has" : "have"} tasks that run in no server: ${named.join(", ")}${more}`,
    since: null,
    why: "Servers with FLOW_SERVER_TOKEN run system playbooks themselves, and no code: such a step fails with KIND_NOT_AVAILABLE.",
    todo: "Make a pool of workers for them, or take these tasks out.",
    command: `flow pools create NAME --paths ${shellWord(first.path)}`,
    count: left.length,
  });
  return { findings: [uncovered] };
}
