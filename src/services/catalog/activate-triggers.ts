import { jitterOf, nextDue } from "../../language/words/schedule.ts";
import type { Transaction } from "../../repositories/database/database.ts";
import { violatedConstraint } from "../../repositories/database/error-codes.ts";
import {
  deleteTriggersOf,
  lockTriggersOf,
  type NewTrigger,
  type TriggerRow,
  writeTrigger,
} from "../../repositories/triggers/triggers.ts";
import { addressOf, type Trigger, type TriggerOf } from "../../schema/triggers/trigger.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** A version that was written, and what it makes start by itself. */
export interface ActiveVersion {
  /** Its path. */
  document: string;
  version: number;
  /** Who registers it; null: an operator. */
  userId: string | null;
  triggers: readonly TriggerOf[];
  /** As many as there are triggers: for those that are new. */
  newIds: readonly string[];
}

/**
 * Makes the triggers of a version the active ones of its document, in the transaction that writes the version. By their names they keep whether
 * they are on, and from when an interval and what was missed count. Throws `FlowError` CONFLICT for the name of a trigger that another
 * document has for the same playbook, and for a webhook's path that another trigger has.
 */
export async function activateTriggers(tx: Transaction, version: ActiveVersion): Promise<void> {
  const { document, triggers, newIds } = version;
  const { rows, now } = await lockTriggersOf(tx, document);
  const known = new Map(rows.map((row) => [nameOf(row.path, row.name), row]));
  const kept = triggers.flatMap(({ path, trigger }) => known.get(nameOf(path, trigger.name))?.triggerId ?? []);
  // First: an address may pass from one to another.
  if (rows.length > kept.length) await deleteTriggersOf(tx, document, kept);
  for (const [index, { path, trigger }] of triggers.entries()) {
    const before = known.get(nameOf(path, trigger.name));
    const row = rowOf({ path, trigger, triggerId: before?.triggerId ?? newIds[index] ?? "" }, before, now);
    const isWritten = await writeTrigger(tx, version, row).catch((error: unknown) => {
      throw violatedConstraint(error) === "trigger_address" ? addressTaken(document, row) : error;
    });
    if (!isWritten) throw nameTaken(document, row);
  }
}

function nameOf(path: string, name: string): string {
  return `${path}\n${name}`;
}

function rowOf(
  { path, trigger, triggerId }: TriggerOf & { triggerId: string },
  before: TriggerRow | undefined,
  now: number,
): NewTrigger {
  const activeSince = before?.activeSince.getTime() ?? now;
  // What a new schedule would have done before it was there is not missed.
  const isSame = before !== undefined && textOf(before.definition) === textOf(trigger);
  const countedFrom = isSame ? before.countedFrom.getTime() : now;
  const next = before?.enabled === false ? NO_TIME : nextTimeOf(triggerId, trigger, { countedFrom, activeSince });
  return { triggerId, path, definition: trigger, address: addressOf(trigger), activeSince, countedFrom, ...next };
}

function textOf({ schedule }: Trigger): string {
  return JSON.stringify(schedule ?? null);
}

const NO_TIME = { nextDueAt: null, wakeAt: null };

/** The next time of a trigger, and when a server is to look at it; null for one that fires at no time. */
export function nextTimeOf(
  triggerId: string,
  { schedule }: Trigger,
  { countedFrom, activeSince }: { countedFrom: number; activeSince: number },
): Pick<NewTrigger, "nextDueAt" | "wakeAt"> {
  const due = schedule === undefined ? undefined : nextDue(schedule, countedFrom, activeSince);
  if (schedule === undefined || due === undefined) return NO_TIME;
  return { nextDueAt: due, wakeAt: due + jitterOf(triggerId, due, schedule.jitterMs) };
}

function nameTaken(document: string, { path, definition }: NewTrigger): FlowError {
  const message = `'${document}' was not registered: '${path}' has a trigger '${definition.name}' from another document`;
  return new FlowError("CONFLICT", `${message}. Rename it, or register that document without it first`);
}

function addressTaken(document: string, { address }: NewTrigger): FlowError {
  const message = `'${document}' was not registered: another trigger has the address '${address ?? ""}'`;
  return new FlowError("CONFLICT", `${message}. Choose another one, or register its document without it first`);
}
