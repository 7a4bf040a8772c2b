import { compileProgram } from "../../../src/engine/program/program.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { createLocalRuntime } from "../../../src/local/runtime.ts";
import { createToolRegistry } from "../../../src/tools/registry.ts";

/*
 * Prints by how many bytes the reachable heap grows between iteration 5,000 and 20,000 of a loop. A process of its own:
 * only one that was started with --expose-gc can tell what is reachable.
 */

const text = `
apiVersion: flow/v2
kind: Playbook
metadata: { name: test }
workflow:
  - step: each
    loop: { in: 20000, spec: { policy: { exec: ${process.argv[2] ?? "local"} } } }
    tool: { kind: noop }
`;
const heaps: number[] = [];
const runtime = createLocalRuntime({
  tools: (store) => createToolRegistry({ allowPrivate: [], store }),
  credentials: { find: () => Promise.resolve(undefined) },
  observe(_, events) {
    const isMark = events.some(
      (event) => event.type === "loop.iteration.completed" && event.iteration % 5_000 === 4_999,
    );
    if (!isMark) return;
    globalThis.gc?.();
    heaps.push(process.memoryUsage().heapUsed);
  },
});
const { playbook } = loadPlaybook(text, "test.yaml");
if (playbook === undefined || globalThis.gc === undefined) throw new Error("Run it with --expose-gc");
const program = { program: compileProgram(playbook), file: "test.yaml", warnings: [] };
await runtime.run(program, { input: {} }, new AbortController().signal);
await runtime.close();
process.stdout.write(String((heaps.at(-1) ?? 0) - (heaps[0] ?? 0)));
