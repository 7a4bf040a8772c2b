import { useRef } from "react";

/**
 * A key for each request that starts something: the same one for the same body until it was answered, so that a double click, or a
 * click after a lost connection, starts it once. A click after the answer starts it again.
 */
export function useIdempotencyKey(): { of(body: unknown): { "idempotency-key": string }; answered(): void } {
  const last = useRef<{ body: string; key: string }>(undefined);
  return {
    of(body) {
      const text = JSON.stringify(body);
      if (last.current?.body !== text) last.current = { body: text, key: randomKey() };
      return { "idempotency-key": last.current.key };
    },
    answered() {
      last.current = undefined;
    },
  };
}

/** Pages that do not come over https have no `randomUUID`. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
