import { createHash } from "node:crypto";
import type { ServerCall } from "../../src/adapters/server/connection.ts";
import type { ExecutionStore } from "../../src/ports/execution-store.ts";
import { askedRerun, rerunAnswer } from "../../src/routes/executions/rerun-request.ts";
import type { RerunAnswer, RerunBody } from "../../src/schema/api/steering.ts";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { fromOf, type Rerun, rerunInput } from "../../src/services/executions/rerun-execution.ts";
import { type OriginalFacts, openOriginal, prepareRerun } from "../../src/services/executions/rerun-original.ts";
import type { Orchestrator } from "../../src/services/orchestration/orchestrator.ts";
import type { ExecutionRow } from "../support/engine/memory-store.ts";
import { programOf } from "./playbooks.ts";
import type { Tables } from "./tables.ts";

/** What beginning reruns needs. */
export interface RerunParts {
  orchestrator: Pick<Orchestrator, "start">;
  /** As this server has it. */
  store: ExecutionStore;
  tables: Tables;
  /** Sends a statement that is not one of the port's. */
  query<T>(statement: () => Promise<T>): Promise<T>;
}

/** As `services/executions/rerun-execution` begins a rerun, with the one version of each playbook that there is here. */
export async function rerun(parts: RerunParts, executionId: string, call: ServerCall): Promise<RerunAnswer> {
  const text = String(call.body ?? "{}");
  const request = askedRerun(JSON.parse(text) as RerunBody);
  const programs = async (catalogId: string) => programOf(catalogId);
  const deps = { store: parts.store, programs, facts: factsOf(parts) };
  const original = await openOriginal(deps, executionId);
  const { state, stored } = original;
  const { catalogId } = stored;
  const { program, path, version } = programOf(catalogId);
  const prepared = await prepareRerun(deps, original, { ...request, from: fromOf(stored.status, request), program });
  const { reused, willRun, steps } = prepared;
  const told: Rerun = { path, version, reused, willRun, steps, warnings: [], duplicate: false };
  if (request.dryRun) return rerunAnswer(executionId, told);
  const children = Object.values(request.reuseChildren);
  const started = await parts.orchestrator.start({
    entry: { catalogId, path, version },
    input: state.input,
    idempotency: { caller: "operator", key: call.idempotencyKey ?? "", bodySha256: sha256(`${executionId}\n${text}`) },
    rerun: rerunInput(original, prepared, request, { version, children }),
  });
  return rerunAnswer(executionId, { ...told, executionId: started.executionId });
}

/** The execution whose result a rerun takes in place of a call, if it names one. */
export function takenChild(caller: ExecutionRow | undefined, step: string, iter?: JsonObject): string | undefined {
  const named = caller?.start.line?.request?.["reuse_children"] as Record<string, string> | undefined;
  return named?.[iter === undefined ? step : `${step}[${String(iter["_index"])}]`];
}

/** Nothing is deleted here, and results stay. */
function factsOf({ tables: { store, payloads }, query }: RerunParts): OriginalFacts {
  return {
    isBeingDeleted: async () => false,
    findGone: (asked) => query(async () => asked.flatMap(({ ref }) => (payloads.has(ref) ? [] : [ref]))),
    findOwnersWithin: (executionId, owners) =>
      query(async () => {
        const root = store.executions.get(executionId)?.rootExecutionId ?? "";
        const line = store.executions.get(root)?.start.line?.refers_to ?? [];
        return owners.filter((id) => store.executions.get(id)?.rootExecutionId === root || line.includes(id));
      }),
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
