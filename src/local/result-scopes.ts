/** Which payloads end with what (interface specification, Result references): a process's own, so in memory. */
export interface ResultScopes {
  /** A payload was stored under this scope; without one, or as `permanent`, nothing here ends it. */
  saved(ref: string, scope: string | undefined): void;
  /** An execution begins, within the tree of `rootId`. */
  began(executionId: string, rootId: string): void;
  /** A step has ended, and with it what has the scope `step`. */
  stepEnded(executionId: string, step: string): Promise<void>;
  /**
   * An execution has ended, and with it what has the scope `execution`, but for the results of `resultStep`, which are the
   * execution's own; with the root also what has the scope `workflow`.
   */
  ended(executionId: string, resultStep: string | null): Promise<void>;
}

const PLACE = /^noetl:\/\/execution\/([^/]+)\/step\/([^/]+)\//;

/** Nothing stored yet. `forget` deletes a payload. */
export function createResultScopes(forget: (ref: string) => Promise<void>): ResultScopes {
  /** References, by the scope that ends them. */
  const ending = new Map<string, Set<string>>();
  const roots = new Map<string, string>();
  const end = async (key: string, isKept: (ref: string) => boolean = () => false) => {
    const refs = ending.get(key) ?? [];
    ending.delete(key);
    for (const ref of refs) if (!isKept(ref)) await forget(ref);
  };
  return {
    saved(ref, scope) {
      const [, executionId, step] = PLACE.exec(ref) ?? [];
      if (executionId === undefined || step === undefined) return;
      const key = keyOf(scope, executionId, step, roots.get(executionId) ?? executionId);
      if (key === undefined) return;
      const refs = ending.get(key) ?? new Set();
      ending.set(key, refs.add(ref));
    },
    began: (executionId, rootId) => void roots.set(executionId, rootId),
    stepEnded: (executionId, step) => end(`step ${executionId} ${encodeURIComponent(step)}`),
    async ended(executionId, resultStep) {
      const own = resultStep === null ? "" : `/step/${encodeURIComponent(resultStep)}/`;
      await end(`execution ${executionId}`, (ref) => own !== "" && ref.includes(own));
      if (roots.get(executionId) === executionId) await end(`workflow ${executionId}`);
      roots.delete(executionId);
    },
  };
}

function keyOf(scope: string | undefined, executionId: string, step: string, rootId: string): string | undefined {
  if (scope === "step") return `step ${executionId} ${step}`;
  if (scope === "execution") return `execution ${executionId}`;
  return scope === "workflow" ? `workflow ${rootId}` : undefined;
}
