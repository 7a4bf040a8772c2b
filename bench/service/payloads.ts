import { atLeast, atMost, figuresOf, line, measureEach } from "../report/figures.ts";
import type { Measurement } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { withWriting } from "./database-cost.ts";
import { closedLoop } from "./load.ts";

const STEPS = 10;
const IN_FLIGHT = 16;
/** Written once: what a result takes on disk over its size, rows and indexes around it included. */
const COPIES_MAX = 1.5;

/** B6: steps with results of 1.6, 16 and 160 KB that do not compress. */
export async function benchPayloads({ candidates, scale, log, server }: ServiceBench): Promise<Measurement[]> {
  const lines: Measurement[] = [];
  for (const { bytes, workflows } of scale.payloads) {
    const size = bytes * STEPS * workflows;
    const measured = await measureEach(candidates, log, `${bytes / 1_000} KB`, async (candidate) => {
      const once = () => candidate.run({ kind: "payload", steps: STEPS, bytes });
      await closedLoop(4, 4, once);
      const work = () => closedLoop(workflows, IN_FLIGHT, once);
      if (candidate.database === undefined) return { load: await work() };
      const { value, cost } = await withWriting(server, candidate.database, work);
      return { load: value, cost };
    });
    const largest = bytes === scale.payloads.at(-1)?.bytes;
    const name = `B6 results of ${bytes / 1_000} KB`;
    const rate = figuresOf(measured, ({ load }) => size / 1e6 / (load.ms / 1_000));
    const stored = new Map([...measured].flatMap(([who, { cost }]) => (cost ? [[who, cost] as const] : [])));
    lines.push(
      line(`${name}`, "MB/s", rate, largest ? atLeast(50) : {}),
      line(
        `${name}: on disk`,
        "× size",
        figuresOf(stored, (cost) => cost.growthBytes / size),
        largest ? atMost(COPIES_MAX) : {},
      ),
      line(
        `${name}: write-ahead log`,
        "× size",
        figuresOf(stored, (cost) => cost.walBytes / size),
      ),
    );
  }
  return lines;
}
