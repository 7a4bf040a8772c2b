import type { KeyRing, NamedKey } from "../../platform/crypto/key-ring.ts";
import { createSealer, sealingKeys } from "../../platform/crypto/sealing.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import { findSealingRoot } from "../../repositories/executions/reruns.ts";
import { executionOfRef } from "../../schema/api/results.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import { type Audit, audited, type Caller } from "../access/audit.ts";
import { unknownExecution } from "../errors.ts";

/** The keys with which secrets are sealed that pass between the steps of a tree of executions. */
export interface Sealing {
  sealerOf(rootExecutionId: string): Sealer;
  /** The keys of the tree that an execution belongs to, for a worker; audited. Throws `FlowError` NOT_FOUND. */
  keysOf(executionId: string, caller: Caller): Promise<{ rootExecutionId: string; keys: readonly NamedKey[] }>;
  /**
   * The JSON text of a payload that was sealed as a whole, for a caller who may see sensitive results; audited. Undefined for
   * any other payload. Throws `FlowError` NOT_FOUND.
   */
  openResult(ref: string, payload: string, caller: Caller): Promise<string | undefined>;
}

/** What {@link createSealing} needs. */
export interface SealingDeps {
  database: Database;
  keys: KeyRing;
  audit: Pick<Audit, "record">;
}

/** Sealing with a server's keys. */
export function createSealing({ database, keys, audit }: SealingDeps): Sealing {
  const rootOf = async (executionId: string) => {
    const row = await findExecution(database, executionId);
    if (row === undefined) throw unknownExecution(executionId);
    return row.sealedUnder ?? row.rootExecutionId;
  };
  const sealerOf = (rootExecutionId: string) => createSealer(sealingKeys(keys, rootExecutionId));
  return {
    sealerOf,
    async keysOf(executionId, caller) {
      const rootExecutionId = await rootOf(executionId);
      await audit.record(audited(caller, "sealing.key", `execution/${rootExecutionId}`));
      return { rootExecutionId, keys: sealingKeys(keys, rootExecutionId) };
    },
    async openResult(ref, payload, caller) {
      const token = textIn(payload);
      const executionId = executionOfRef(ref);
      if (token === undefined || executionId === undefined) return undefined;
      // Of a deleted one the results stay that reruns refer to: these have its key.
      const root = await findSealingRoot(database, executionId);
      if (root === undefined) throw unknownExecution(executionId);
      const opened = sealerOf(root).open(token);
      if (opened?.kind !== "result") return undefined;
      await audit.record(audited(caller, "result.read", `execution/${executionId}`, { detail: { ref } }));
      return opened.json;
    },
  };
}

/** What stands between the quotes of a JSON text that is one sealed text; undefined for any other. */
function textIn(payload: string): string | undefined {
  const text = payload.trim();
  return text.startsWith('"[sealed:') && text.endsWith(']"') ? text.slice(1, -1) : undefined;
}
