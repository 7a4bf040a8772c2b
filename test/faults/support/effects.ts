import type { ServerResponse } from "node:http";
import { after } from "node:test";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { until } from "./until.ts";

/** Requests of tasks that are not answered yet. */
export interface Hold {
  /** Resolves when so many have come, counted from the beginning of the hold; gives their names. */
  arrived(count?: number): Promise<string[]>;
  /** Answers them, and holds nothing any more. */
  release(): void;
}

/**
 * The side effects of tasks: a server that counts what it is asked to do. A task posts to
 * `<url>/<execution id>/<step>[/<iteration>]`, which is its effect's name, and is answered with `{"done": "<step>[/<iteration>]"}`.
 */
export interface Effects {
  readonly url: string;
  /** How often each was done. */
  readonly counts: ReadonlyMap<string, number>;
  /** From now on tasks of this step wait for their answer. A test knows so that they run, and for how long. */
  hold(step: string): Hold;
}

/** Starts it for this test file. */
export async function startEffects(): Promise<Effects> {
  const counts = new Map<string, number>();
  const holds = new Map<string, { name: string; response: ServerResponse }[]>();
  const answer = (name: string, response: ServerResponse) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ done: name.slice(name.indexOf("/") + 1) }));
  };
  const server = await startHttpServer(({ url }, response) => {
    const name = url.slice(1);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const held = holds.get(name.split("/")[1] ?? "");
    if (held === undefined) answer(name, response);
    else held.push({ name, response });
  });
  after(() => server.close());
  return {
    url: server.origin,
    counts,
    hold(step) {
      const held: { name: string; response: ServerResponse }[] = [];
      holds.set(step, held);
      return {
        arrived: (count = 1) =>
          until(`${count} tasks of step ${step} run`, () => held.length >= count && held.map(({ name }) => name)),
        release() {
          if (holds.get(step) === held) holds.delete(step);
          for (const { name, response } of held) answer(name, response);
        },
      };
    },
  };
}
