import { type EventSealing, sealEvent } from "../../engine/sealing/seal-event.ts";
import { mayBeSealed, openSealed, type Secrets } from "../../engine/sealing/secrets.ts";
import type { ChildRunner } from "../../ports/children.ts";
import type { WritableResultStore } from "../../ports/result-store.ts";
import type { Command } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import type { Report, WorkerDeps } from "../deps.ts";

/** A command's connection to the outside: what it sends is sealed, what it receives is opened. */
export interface SealedWork {
  /** The same parts; results are sealed as they are stored and opened as they are loaded, children likewise. */
  deps: WorkerDeps;
  /** The same receiver; it gets no secret. */
  report: Report;
  /** The value with what was sealed in it opened; that is a secret of this command from here on. */
  open<T>(value: T): Promise<T>;
}

/**
 * Puts sealing around one command. `secrets` must not leave the worker in plain text: the set grows while the command runs. If
 * nothing is noted and nothing sealed arrives, this costs a look at each text and requests no key. Without keys (`deps.sealers`
 * undefined) values pass as they are, but errors are still redacted.
 */
export function sealWork(
  deps: WorkerDeps,
  command: Command,
  report: Report,
  secrets: Secrets,
  signal: AbortSignal,
): SealedWork {
  let known: Promise<Sealer> | undefined;
  const sealerOf = (): Promise<Sealer> | undefined => {
    known ??= deps.sealers?.sealerOf(placeOf(command), signal).catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
  const open = async <T>(value: T): Promise<T> => {
    // Made of JSON all through, whatever its type says.
    const json = value as Json;
    if (deps.sealers === undefined || !mayBeSealed(json)) return value;
    const sealer = await sealerOf();
    return sealer === undefined ? value : (openSealed(json, sealer, secrets) as T);
  };
  const seal = async <T extends Json>(value: T): Promise<T> => {
    const sealer = secrets.isEmpty || !secrets.isIn(value) ? undefined : await sealerOf();
    return sealer === undefined ? value : (secrets.seal(value, sealer) as T);
  };
  return {
    deps: {
      ...deps,
      results: sealedResults(deps.results, { secrets, sealerOf, seal, open }),
      children: sealedChildren(deps.children, { seal, open }),
    },
    report: async (events) => {
      await report(secrets.isEmpty ? events : await sealEvents(events, secrets, sealerOf));
    },
    open,
  };
}

function placeOf({ execution_id, context }: Command) {
  return {
    executionId: execution_id,
    rootExecutionId: context.root_execution_id ?? context.parent_execution_id ?? execution_id,
  };
}

interface Sealing {
  secrets: Secrets;
  sealerOf(): Promise<Sealer> | undefined;
  seal<T extends Json>(value: T): Promise<T>;
  open<T>(value: T): Promise<T>;
}

async function sealEvents(events: FlowEvent[], secrets: Secrets, sealerOf: Sealing["sealerOf"]): Promise<FlowEvent[]> {
  const { hide, hideIn, hideCut } = secrets;
  let isSealed = false;
  const look = (value: Json): Json => {
    isSealed ||= secrets.isIn(value);
    return value;
  };
  // Mostly only a message has a secret in it, and no key is needed.
  const hidden = events.map((event) => sealEvent(event, { seal: look, hide, hideIn, hideCut }));
  const sealer = isSealed ? await sealerOf() : undefined;
  if (sealer === undefined) return hidden;
  const sealing: EventSealing = { seal: (value) => secrets.seal(value, sealer), hide, hideIn, hideCut };
  return events.map((event) => sealEvent(event, sealing));
}

function sealedResults(results: WritableResultStore, { secrets, sealerOf, seal, open }: Sealing): WritableResultStore {
  const sealJson = async (json: string) => {
    // Without an escape every text stands in it as it is, and need not be parsed to be looked through.
    if (secrets.isEmpty || (!json.includes("\\") && !secrets.isIn(json))) return json;
    const value = JSON.parse(json) as Json;
    const sealed = await seal(value);
    return sealed === value ? json : JSON.stringify(sealed);
  };
  return {
    kind: results.kind,
    load: async (ref) => await open(await results.load(ref)),
    async save(ref, text, keeping) {
      if (keeping?.isFile === true) {
        checkFile(ref, text, secrets);
        return await results.save(ref, text, keeping);
      }
      // No secret is known that could be in it.
      if (typeof text !== "string" && secrets.isEmpty && keeping?.sensitive !== true)
        return await results.save(ref, text, keeping);
      const json = typeof text === "string" ? text : new TextDecoder().decode(text);
      if (keeping?.sensitive !== true) return await results.save(ref, await sealJson(json), keeping);
      const { sensitive: _, ...rest } = keeping;
      const sealer = await sealerOf();
      return await results.save(ref, sealer === undefined ? json : sealedWhole(json, secrets, sealer), rest);
    },
  };
}

/** A file is for people and other programs, who could not open what is sealed. Throws `FlowError` INVALID_INPUT. */
function checkFile(ref: string, content: string | Uint8Array, secrets: Secrets): void {
  if (secrets.isEmpty) return;
  const text = typeof content === "string" ? content : new TextDecoder().decode(content);
  if (secrets.hide(text) === text && secrets.hide(ref) === ref) return;
  throw new FlowError("INVALID_INPUT", "The file was not stored: it holds a secret of this step. Leave that out");
}

/** As a whole; and the credentials' own values separately, because people who may see the result may not see those. */
function sealedWhole(json: string, secrets: Secrets, sealer: Sealer): string {
  const inner = secrets.isEmpty ? json : JSON.stringify(secrets.sealGiven(JSON.parse(json) as Json, sealer));
  return JSON.stringify(sealer.sealResult(inner));
}

function sealedChildren(children: ChildRunner, { seal, open }: Pick<Sealing, "seal" | "open">): ChildRunner {
  return {
    async run(request, signal) {
      const { parent } = request;
      const iter = parent.iter === undefined ? {} : { iter: await seal(parent.iter) };
      const input = await seal<JsonObject>(request.input);
      const outcome = await children.run({ ...request, input, parent: { ...parent, ...iter } }, signal);
      return { ...outcome, result: await open(outcome.result) };
    },
  };
}
