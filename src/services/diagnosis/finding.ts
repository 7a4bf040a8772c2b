import { EXECUTIONS_NAMED_MAX, type Finding } from "../../schema/api/doctor.ts";
import { defined } from "../../schema/words/defined.ts";

/** What a check of the doctor came to. */
export interface CheckResult {
  findings: Finding[];
  /** Numbers worth showing whatever is wrong, by name. */
  counts?: Record<string, number>;
}

/** A finding as checks write it. */
export interface FindingInput {
  check: string;
  /** Default `anomaly`. */
  level?: Finding["level"];
  what: string;
  since: Date | null;
  why: string;
  todo: string;
  command?: string;
  count?: number;
  executionIds?: readonly string[];
}

/** The finding as reported. */
export function finding(input: FindingInput): Finding {
  const { check, level = "anomaly", what, since, why, todo, command, count, executionIds } = input;
  return {
    check,
    level,
    what,
    since: since === null ? null : since.toISOString(),
    why_it_matters: why,
    what_to_do: todo,
    command: command ?? null,
    ...defined({ count }),
    ...(executionIds !== undefined && { execution_ids: executionIds.slice(0, EXECUTIONS_NAMED_MAX) }),
  };
}

/** `1 command`, `2 commands`, with an s or with the plural that is given. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** A text as one word of a shell, whatever it holds: a command of a finding is copied and run. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
