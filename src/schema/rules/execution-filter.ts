import type { OriginKind } from "./origin.ts";

/** States of an execution. The last three are final. */
export const EXECUTION_STATES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"] as const;
export type ExecutionStateName = (typeof EXECUTION_STATES)[number];

/**
 * Which executions: the filter of lists and of bulk operations, as it travels. All of it must hold; an absent key does not filter.
 * `schema/api/execution-filter` checks it, `execution-query` makes it of what people type, and
 * `repositories/executions/matching-executions` looks for them.
 */
export interface ExecutionFilter {
  /** One of these; each once. */
  status?: ExecutionStateName[];
  /** The path of their playbook; with `*` within a part of it, `**` over parts. */
  path?: string;
  /** This text is in the path, in whatever case. */
  path_contains?: string;
  version?: number;
  /** Started at this moment or later (RFC 3339). */
  since?: string;
  /** Started before this moment. */
  until?: string;
  /** The code of their error. */
  error_code?: string;
  /** They failed at this step, or have open work in it. */
  step?: string;
  /** Each of these labels, with exactly this value. */
  labels?: Record<string, string>;
  /** Inputs by name, or by names with dots, with the value as text. */
  input?: Record<string, string>;
  parent_execution_id?: string;
  /** What started them. */
  started_by?: OriginKind;
  /** Which user, trigger, execution or bulk operation started them. */
  started_by_id?: string;
  /** No execution called them. */
  roots_only?: true;
  /** The first digits of their ids. */
  id_prefix?: string;
  /** They have one of these ids. */
  execution_ids?: string[];
}

/** Most ids of one filter: as many as people mark by hand. */
export const FILTER_IDS_MAX = 1_000;

/** Most labels, and most inputs, of one filter: as many as an execution has labels. */
export const FILTER_MAP_MAX = 32;

/** Whether a path of a filter stands for several. */
export function isPathPattern(path: string): boolean {
  return path.includes("*");
}
