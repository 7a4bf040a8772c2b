import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Caller } from "../access/audit.ts";
import type { Credentials } from "../credentials/credentials.ts";

/** Reads the credentials that a trigger names: as its playbook, with a row in the audit log. */
export type HookSecrets = (
  trigger: { triggerId: string; path: string; name: string },
  names: readonly string[],
) => Promise<JsonObject[]>;

/** What {@link createHookSecrets} needs. */
export interface HookSecretsDeps {
  credentials: Pick<Credentials, "read">;
  /** Reports a credential that a trigger may not use, or that is not there. */
  onUnreadable(trigger: { path: string; name: string }, error: FlowError): void;
  now(): number;
}

/** How long what was read counts: senders decide how many deliveries there are, so each would not be a row of the audit log. */
const KNOWN_MS = 2_000;
/** Triggers whose credentials are in memory. */
const KNOWN_MAX = 1_000;

/**
 * Those that cannot be read are left out: the deliveries of such a trigger are refused as those with a wrong signature are. Rejects where
 * nothing could be found out, as while the database is away.
 */
export function createHookSecrets({ credentials, onUnreadable, now }: HookSecretsDeps): HookSecrets {
  const known = new Map<string, { at: number; data: Promise<JsonObject[]> }>();
  const readOne = async (
    name: string,
    trigger: { path: string; name: string },
    caller: Caller,
  ): Promise<JsonObject[]> => {
    try {
      return [(await credentials.read(name, caller, { path: trigger.path })).data];
    } catch (error) {
      if (!(error instanceof FlowError) || !UNREADABLE.has(error.code)) throw error;
      onUnreadable(trigger, error);
      return [];
    }
  };
  return async ({ triggerId, path, name }, names) => {
    const key = JSON.stringify([triggerId, path, ...names]);
    const found = known.get(key);
    if (found !== undefined && now() - found.at < KNOWN_MS) return await found.data;
    const caller: Caller = { actorKind: "system", actor: `trigger/${path}/${name}`, rule: "trigger" };
    const data = Promise.all(names.map((one) => readOne(one, { path, name }, caller))).then((all) => all.flat());
    known.delete(key);
    if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value ?? "");
    known.set(key, { at: now(), data });
    try {
      return await data;
    } catch (error) {
      known.delete(key);
      throw error;
    }
  };
}

const UNREADABLE: ReadonlySet<string> = new Set(["NOT_FOUND", "FORBIDDEN"]);
