import type { ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import { startHttpServer } from "../../support/servers/http-server.ts";

/** An HTTP server that answers only when it is told to: how long a task lasts is the test's choice. */
export interface Gate {
  /** A task that ends when the gate of this name is opened. */
  task(name: string): string;
  /** Resolves when a task is at the gate. */
  reached(name: string): Promise<void>;
  /** Resolves when the task at the gate was stopped. */
  left(name: string): Promise<void>;
  open(name: string): void;
}

/** Starts one; it is closed after the test. */
export async function startGate(context: TestContext): Promise<Gate> {
  const at = new Map<string, ServerResponse>();
  const gone = new Set<string>();
  const looks = new Set<() => void>();
  const changed = () => {
    for (const look of looks) look();
  };
  const until = (is: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!is()) return;
        looks.delete(look);
        resolve();
      };
      looks.add(look);
      look();
    });
  const server = await startHttpServer((request, response) => {
    const name = request.url.slice(1);
    at.set(name, response);
    response.on("close", () => {
      if (!response.writableEnded) gone.add(name);
      changed();
    });
    changed();
  });
  context.after(() => server.close());
  return {
    task: (name) => `{kind: http, method: GET, url: "${server.origin}/${name}"}`,
    reached: (name) => until(() => at.has(name)),
    left: (name) => until(() => gone.has(name)),
    open: (name) => at.get(name)?.end("{}"),
  };
}
