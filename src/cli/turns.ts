import type { Tool } from "../tools/tool.ts";

/** Work done in one go before timers, signals and sockets get their turn. */
const TURN_MS = 20;

/**
 * The same tools, asked for with a pause now and then. Tools that answer at once (`noop`) would otherwise run a loop of
 * 100,000 iterations as one chain of promises, during which no Ctrl-C arrives and nothing is drawn. A pause costs some
 * microseconds, fifty times a second.
 */
export function takeTurns(tools: { get(kind: string): Promise<Tool> }): { get(kind: string): Promise<Tool> } {
  let turnBegan = performance.now();
  return {
    async get(kind) {
      if (performance.now() - turnBegan > TURN_MS) {
        await new Promise(setImmediate);
        turnBegan = performance.now();
      }
      return await tools.get(kind);
    },
  };
}
