import { loadConfig } from "../../platform/config/config.ts";
import type { AnswerOf, RouteContract } from "../../schema/routes/contract.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { defined } from "../../schema/words/defined.ts";
import type { CliInput } from "../command-line/command.ts";
import { callServer } from "./client.ts";
import { everyItem, type FirstItems, firstItems } from "./paginate.ts";
import { type ServerTarget, serverTarget } from "./target.ts";

/** The server that a command line means, and the calls of it, which end with the command. They throw as `callServer` does. */
export interface CommandServer {
  target: ServerTarget;
  /** Calls a route. `timeoutMs`: its time limit in milliseconds, 30 s by default. */
  call<C extends RouteContract>(contract: C, input: RouteInput<C>, timeoutMs?: number): Promise<AnswerOf<C>>;
  /** Every item of a list that answers in pages. */
  all<C extends RouteContract, Item>(
    contract: C,
    input: RouteInput<C>,
    itemsOf: (page: AnswerOf<C>) => readonly Item[],
  ): Promise<Item[]>;
  /** The first items of such a list, at most `limit`. */
  first<C extends RouteContract, Item>(
    contract: C,
    input: RouteInput<C>,
    itemsOf: (page: AnswerOf<C>) => readonly Item[],
    limit: number,
  ): Promise<FirstItems<Item>>;
}

/** Finds the server of a command line, without calling it. Throws as `serverTarget` does. */
export async function openServer(input: CliInput): Promise<CommandServer> {
  const { environment, signal } = input.io;
  const target = await serverTarget(input, loadConfig(environment));
  return {
    target,
    call: (contract, sent, timeoutMs) => callServer(target, contract, { ...sent, signal, ...defined({ timeoutMs }) }),
    all: (contract, sent, itemsOf) => everyItem(target, contract, { ...sent, signal }, itemsOf),
    first: (contract, sent, itemsOf, limit) => firstItems(target, contract, { ...sent, signal }, itemsOf, limit),
  };
}
