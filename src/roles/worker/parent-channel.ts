import { readFileSync } from "node:fs";
import { secretVariables } from "../../platform/config/config.ts";

/** The channel to the process that started this one as a part of itself. */
export interface ParentChannel {
  /** Aborted when the parent is gone, or wants this process to stop: both close the channel. */
  signal: AbortSignal;
  /** Notifies the parent that this process is ready. */
  ready(): void;
  /** Lets this process end: an open channel would keep it. */
  close(): void;
}

/** The channel; undefined in a process that was started on its own. */
export function openParentChannel(): ParentChannel | undefined {
  if (process.send === undefined) return undefined;
  const gone = new AbortController();
  process.once("disconnect", () => gone.abort(new Error("The process that started this one is gone")));
  // `disconnect` reports a parent that dies while something is sent to it.
  process.on("error", () => undefined);
  return {
    signal: gone.signal,
    ready() {
      if (process.connected) process.send?.(READY);
    },
    close() {
      if (process.connected) process.disconnect();
    },
  };
}

/** Says to a part that its secrets come by standard input, and not in its environment, where other programs could read them. */
const SECRETS_BY_INPUT = "FLOW_SECRETS_BY_INPUT";

/** What the process that starts a part gives it: its environment without secrets, and the secrets for its standard input. */
export function splitSecrets(environment: Readonly<NodeJS.ProcessEnv>): { env: NodeJS.ProcessEnv; input: string } {
  const names = secretVariables(environment);
  const env: NodeJS.ProcessEnv = { ...environment, [SECRETS_BY_INPUT]: "true" };
  for (const name of names) delete env[name];
  return { env, input: JSON.stringify(Object.fromEntries(names.map((name) => [name, environment[name]]))) };
}

/** The secrets that the process which started this one gives it; none to a process that was started on its own. */
export function givenSecrets(environment: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  if (environment[SECRETS_BY_INPUT] === undefined || process.send === undefined) return {};
  return JSON.parse(readFileSync(0, "utf8")) as NodeJS.ProcessEnv;
}

/** What a part says when it does its work. */
export const READY = "ready";
