import { once } from "node:events";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import { PEERS } from "./install-peers.ts";

/** Forks `bench/peers/<file>` and waits until it says `{ ready }`; gives that with the process. */
export async function forkPeer<Ready>(file: string, args: readonly string[]): Promise<{ child: Child; ready: Ready }> {
  const child = startChild(process.execPath, [join(PEERS, file), ...args], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    cwd: PEERS,
  });
  const [message] = await child.before("is not ready", once(child.process, "message"));
  // The first message of `bench/peers/*.mjs`.
  return { child, ready: (message as { ready: Ready }).ready };
}
