import type { Database } from "../database/database.ts";

/** What of a server's background work there is something to do for. */
export interface LeftWork {
  /** Open commands that wait for a worker, or that one has. */
  commands: boolean;
  /** Batches that were accepted, and whose consequences are still to be decided. */
  batches: boolean;
  /** Executions that are open past their deadline. */
  overdue: boolean;
  /** Results that end with a step or an execution. */
  results: boolean;
  /** Pools of workers that are not revoked. */
  pools: boolean;
  /** Operations on many executions that are under way. */
  bulk: boolean;
  /** Parked commands whose time has come. */
  waits: boolean;
  /** Signals to everyone on which no server works, and waits that were not yet looked for those that are kept. */
  signals: boolean;
  /** Messages about approvals that are to be sent. */
  messages: boolean;
  /** Triggers whose time has come, and fires that are to be decided about. */
  triggers: boolean;
  /** Triggers that watch ends of executions. */
  watchers: boolean;
  /** Triggers that read streams, or that did a moment ago. */
  streams: boolean;
}

/** What a look finds beside it. */
export interface Look extends LeftWork {
  /** In how many milliseconds the next wait is over; null: nothing waits for a time. */
  nextMs: number | null;
  /** The database's clock, milliseconds since 1970. */
  shownMs: number;
}

/**
 * Whether there is anything to look for, each by one step down a partial index. Each of the works that follow from it has statements of its
 * own with narrower conditions: while nothing is open, this one takes the place of six.
 */
export async function findLeftWork({ sql }: Database): Promise<Look> {
  const [row] = await sql<[Look]>`
    select
      exists (select from flow.command where status = 'PENDING')
        or exists (select from flow.command where status in ('CLAIMED', 'RUNNING')) as commands,
      exists (select from flow.batch where state in ('accepted', 'processing')) as batches,
      exists (select from flow.execution where deadline_at <= now() and ended_at is null) as overdue,
      exists (select from flow.result where scope in ('step', 'execution'))
        or exists (select from flow.result where scope = 'workflow') as results,
      exists (select from flow.worker_pool where revoked_at is null) as pools,
      exists (select from flow.bulk where status = 'running' or worker is not null) as bulk,
      exists (select from flow.wait where due_at <= now()) as waits,
      exists (select from flow.wait where not is_looked)
        or exists (select from flow.signal where state = 'sending' and (lease_expires_at <= now()) is not false) as signals,
      exists (select from flow.approval_message where sent_at is null) as messages,
      exists (select from flow.trigger where wake_at <= now())
        or exists (select from flow.trigger_fire where wake_at <= now())
        or exists (select from flow.watched_end where wake_at <= now()) as triggers,
      exists (select from flow.trigger where enabled and kind <> 'schedule' and kind = 'execution') as watchers,
      exists (select from flow.trigger where enabled and kind <> 'schedule' and kind = 'nats')
        or exists (select from flow.lease where name like 'trigger/%' and expires_at > now()) as streams,
      (select extract(epoch from due_at - now()) * 1000 from flow.wait where due_at > now() order by due_at limit 1)::float8
        as "nextMs",
      (extract(epoch from now()) * 1000)::float8 as "shownMs"`;
  return row;
}
