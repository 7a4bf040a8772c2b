import type { Notice } from "../../src/schema/words/notice.ts";
import type { World } from "./process.ts";

/** Notices between servers: lost, doubled, late, and some that no server has sent. */
export interface VirtualBroker {
  publish(notice: Notice): void;
  subscribe(handler: (notice: Notice) => void): () => void;
}

/** A broker without subscribers. */
export function createVirtualBroker({ clock, random, faults }: World): VirtualBroker {
  const handlers = new Set<(notice: Notice) => void>();
  const carry = (handler: (notice: Notice) => void, notice: Notice) => {
    if (faults.happens("noticeLost")) return;
    const ms = faults.happens("noticeDelayed") ? random.between(500, 20_000) : random.between(0, 10);
    clock.after(ms, () => {
      if (handlers.has(handler)) handler(notice);
    });
  };
  return {
    publish(notice) {
      for (const handler of handlers) {
        carry(handler, notice);
        if (faults.happens("noticeDoubled")) carry(handler, notice);
        if (faults.happens("noticeForged")) carry(handler, forged(notice, random.between(1, 9_999)));
      }
    },
    subscribe(handler) {
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
  };
}

function forged(notice: Notice, id: number): Notice {
  const text = String(id);
  if (notice.kind === "commands") return { kind: "commands", commandIds: [text, ...notice.commandIds] };
  return { ...notice, executionId: text };
}
