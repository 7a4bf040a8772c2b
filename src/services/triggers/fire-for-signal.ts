import type { Database } from "../../repositories/database/database.ts";
import { listEnabled } from "../../repositories/triggers/triggers.ts";
import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Access } from "../access/access.ts";
import type { Triggers } from "./triggers.ts";

/** Triggers that signals are compared with. */
const TRIGGERS_MAX = 1_000;

/** A signal to everyone who waits for its name. */
interface SentSignal {
  signalId: string;
  name: string;
  /** Of one with a key only executions take notice (control, rule 24). */
  key?: string;
  id?: string;
  data: Json;
  by: string;
  /** By whose rights it acts; absent: an operator's. */
  userId?: string;
  at: string;
}

/**
 * Fires the triggers of a signal's name, once each however often it is called: the fire's key names the signal. Gives how many there are. A
 * signal with a key starts nothing, and a user's only what that user may execute.
 */
export async function fireForSignal(
  { database, access }: { database: Database; access: Pick<Access, "user"> },
  fireMany: Triggers["fireMany"],
  signal: SentSignal,
): Promise<number> {
  const { signalId, name, key, id, data, by, userId, at } = signal;
  if (key !== undefined) return 0;
  const enabled = await listEnabled(database, "signal", TRIGGERS_MAX);
  const named = enabled.filter(({ definition }) => definition.signal?.name === name);
  const user = userId === undefined || named.length === 0 ? undefined : await access.user({ userId });
  const may = (path: string) => user !== undefined && decideUserAccess(user, "execute", path).allowed;
  const asked = userId === undefined ? named : named.filter(({ path }) => may(path));
  if (asked.length === 0) return 0;
  const scope: JsonObject = { name, key: null, id: id ?? null, data, at, by };
  const delivery = { key: `signal/${signalId}`, dueAt: Date.parse(at), names: { signal: scope } };
  await fireMany(asked.map((trigger) => ({ trigger, delivery })));
  return asked.length;
}
