import { FlowError } from "../../src/schema/errors.ts";
import type { Json } from "../../src/schema/json.ts";
import type { WorkerDeps } from "../../src/worker/deps.ts";
import type { Process } from "./process.ts";
import type { Claim } from "./server.ts";
import { scriptedTool } from "./tools.ts";
import type { WorkerParts } from "./worker.ts";

/** What `runCommand` is given for one claim: every part of it is an await point at which its process may die. */
export function virtualDeps(parts: WorkerParts, process: Process, claim: Claim, now: () => number): WorkerDeps {
  const { name, clock, server, script, payloads } = parts;
  const { random, ledger } = script;
  const guarded = async <T>(action: () => T): Promise<T> => {
    await process.gate();
    const result = action();
    await process.gate();
    return result;
  };
  const sleep = async (ms: number, signal?: AbortSignal) => {
    await process.gate();
    await clock.sleep(ms, signal);
    await process.gate();
  };
  return {
    worker: name,
    tools: { get: () => Promise.resolve(scriptedTool(script, process, claim)) },
    credentials: { find: () => Promise.resolve(undefined) },
    children: {
      run: async (request, signal) => {
        await sleep(random.between(100, 20_000), signal);
        const value = { child: request.path ?? "", input: request.input };
        return { executionId: "77", path: value.child, status: "COMPLETED", result: { value }, error: null };
      },
    },
    results: {
      kind: "memory",
      load: (ref) => guarded(() => payload(payloads, ref)),
      save: (ref, json) =>
        guarded(() => {
          if (!server.holds(claim)) throw new FlowError("CANCELLED", `${ref} is another claim's to store`);
          payloads.set(ref, JSON.parse(json));
          // Each claim's payload counts as another, as the answers of real tools are.
          const sha256 = `${claim.command.command_id}#${claim.attempt}`;
          ledger.store(ref, sha256);
          return { sha256, bytes: json.length };
        }),
    },
    clock: { now, sleep },
    random: random.next,
    env: {},
    log: () => undefined,
  };
}

function payload(payloads: ReadonlyMap<string, Json>, ref: string): Json {
  const found = payloads.get(ref);
  if (found === undefined) throw new FlowError("REFERENCE_NOT_AVAILABLE", `There is no ${ref}`);
  return found;
}
