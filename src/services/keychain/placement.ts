import type { Database } from "../../repositories/database/database.ts";
import { findKeychainOwner, type KeychainOwner } from "../../repositories/keychain/keychain.ts";
import { findExecutableById } from "../../repositories/orchestration/find-startable.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { unknownExecution } from "../errors.ts";
import { cacheKeyPrefix, type KeychainAsked, neededExecution } from "./keychain-key.ts";

/** Where an entry is to be kept. */
export interface KeychainPlace {
  cacheKey: string;
  /** Undefined for a global entry. */
  owner: KeychainOwner | undefined;
}

/** The key of an entry that may be kept. Throws `FlowError` INVALID_INPUT, NOT_FOUND, CONFLICT. */
export async function placeFor(database: Database, asked: KeychainAsked): Promise<KeychainPlace> {
  const { scope, catalogId, name } = asked;
  const [owner] = await Promise.all([ownerOf(database, asked), checkCatalog(database, catalogId)]);
  const executionId = neededExecution(asked);
  if (executionId !== undefined && owner === undefined) throw unknownExecution(executionId);
  if (owner?.isOpen === false) throw hasEnded(owner);
  return { cacheKey: cacheKeyPrefix(scope, catalogId, name) + (owner?.executionId ?? ""), owner };
}

/** The key of an entry, whether it is there or not. An execution that there is not is the root of no other. */
export async function cacheKeyOf(database: Database, asked: KeychainAsked): Promise<string> {
  const { scope, catalogId, name } = asked;
  const owner = await ownerOf(database, asked);
  return cacheKeyPrefix(scope, catalogId, name) + (owner?.executionId ?? neededExecution(asked) ?? "");
}

async function ownerOf(database: Database, asked: KeychainAsked): Promise<KeychainOwner | undefined> {
  const executionId = neededExecution(asked);
  return executionId === undefined ? undefined : await findKeychainOwner(database, asked.scope, executionId);
}

/** Throws `FlowError` NOT_FOUND. */
export async function checkCatalog(database: Database, catalogId: string): Promise<void> {
  if ((await findExecutableById(database, catalogId)) !== undefined) return;
  throw new FlowError("NOT_FOUND", `There is no catalog entry ${catalogId}`);
}

/** The refusal of an entry of an execution that is over. */
export function hasEnded({ executionId }: Pick<KeychainOwner, "executionId">): FlowError {
  const why = `Execution ${executionId} has ended: the entries of its keychain went with it`;
  return new FlowError("CONFLICT", `${why}, and no new ones are kept`);
}
