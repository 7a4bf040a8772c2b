import { FlowError } from "../../src/schema/errors.ts";
import type { FlowEvent } from "../../src/schema/event.ts";
import type { Process } from "./process.ts";
import type { Answer, Claim } from "./server.ts";
import type { WorkerParts } from "./worker.ts";

/** The reports of one command on their way to the server. */
export interface Delivery {
  /** A report, as `runCommand` makes them. Resolves when it is answered, of an eager worker at once. */
  send(events: FlowEvent[]): Promise<void>;
  /** Resolves when every report has its answer. */
  finished(): Promise<void>;
}

/** How long a report waits that came before those it builds on. */
const EARLY_RESEND_MS = 150;

/**
 * Sends each report until it is answered, again later while it is early. A refused one means that the claim was lost: the
 * command is told to stop, and nothing more is sent of it.
 */
export function openDelivery(
  parts: WorkerParts,
  process: Process,
  claim: Claim,
  controller: AbortController,
): Delivery {
  const { network, server, clock, eager, name } = parts;
  const pending: Promise<void>[] = [];
  let serial = 0;
  let isRefused = false;

  const deliver = async (events: FlowEvent[]): Promise<void> => {
    serial += 1;
    const key = `${name}/${claim.command.command_id}/${claim.attempt}/${serial}`;
    for (;;) {
      const answer: Answer = await network.ask(process, () => server.report(key, events));
      await process.gate();
      if (answer === "refused" && !isRefused) {
        isRefused = true;
        controller.abort(new FlowError("CANCELLED", "refused"));
      }
      if (answer !== "early" || isRefused) return;
      await clock.sleep(EARLY_RESEND_MS);
    }
  };

  return {
    async send(events) {
      await process.gate();
      if (isRefused) return;
      const written: FlowEvent[] = JSON.parse(JSON.stringify(events));
      const delivery = deliver(written);
      pending.push(delivery);
      if (!eager) await delivery;
    },
    async finished() {
      await Promise.all(pending);
    },
  };
}
