import { createHash } from "node:crypto";
import { plainPath } from "../../language/document/catalog-path.ts";
import type { ApprovalLinks } from "../../platform/crypto/approval-links.ts";
import { CHAIN_MAX, endMessage, type TakenMessage, takeMessages } from "../../repositories/approvals/messages.ts";
import type { Database } from "../../repositories/database/database.ts";
import { unavailable } from "../../repositories/database/error-codes.ts";
import { callRefusal, decideUserAccess } from "../../schema/rules/access-rules.ts";
import { messageLink } from "../../schema/words/approval.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Access } from "../access/access.ts";
import type { Executions } from "../executions/executions.ts";

/** Whose idempotency keys the executions of messages have. No caller of the API has this name. */
export const MESSAGE_KEYS = "approval";
/** How long a message is left to the server that took it: if that dies, another one sends it then. */
const TAKEN_MS = 5_000;
/** Messages that one turn takes. */
export const MESSAGES_MAX = 50;

/** What sending messages needs. */
export interface MessagesDeps {
  database: Database;
  executions: Pick<Executions, "start">;
  access: Pick<Access, "user">;
  links: ApprovalLinks;
  /** The address by which people reach this installation, without a slash at its end; undefined where no setting says it. */
  publicUrl(): string | undefined;
  onFault(error: unknown): void;
}

/**
 * Starts the playbooks that tell people of approvals (control, rule 29): each once, whichever servers try it, in the name of the user whose
 * execution waits. What cannot be started is noted with the message, and ends nothing: the approval goes on. Gives how many it took.
 */
export async function sendMessages(deps: MessagesDeps): Promise<number> {
  const taken = await takeMessages(deps.database, TAKEN_MS, MESSAGES_MAX);
  await Promise.all(
    taken.map(async (message) => {
      const outcome = await send(deps, message);
      if (outcome !== undefined) await endMessage(deps.database, message, outcome);
    }),
  );
  return taken.length;
}

/** Undefined: it is to be tried again. */
async function send(
  deps: MessagesDeps,
  message: TakenMessage,
): Promise<{ executionId: string } | { error: string } | undefined> {
  const { approvalId, number, playbook, executionId, path, userId } = message;
  try {
    const refusal = await whyNot(deps, message);
    if (refusal !== undefined) return { error: refusal };
    const input = inputOf(deps, message);
    const key = `${approvalId}/${number}`;
    const started = await deps.executions.start({
      ...{ path: playbook, input, bytes: JSON.stringify(input).length },
      origin: { kind: "execution", id: executionId, name: path },
      ...defined({ startedBy: userId ?? undefined }),
      idempotency: { caller: MESSAGE_KEYS, key, bodySha256: createHash("sha256").update(key).digest("hex") },
    });
    return { executionId: started.executionId };
  } catch (error) {
    if (unavailable(error) !== undefined) return undefined;
    if (error instanceof FlowError) return LATER.has(error.code) ? undefined : { error: error.message };
    deps.onFault(error);
    return { error: "It failed for a fault of the server" };
  }
}

/** Errors that say nothing about the message. */
const LATER: ReadonlySet<string> = new Set([
  ...["UNAVAILABLE", "TIMEOUT", "RATE_LIMITED", "queue_unavailable", "ack_timeout"],
]);

async function whyNot(
  { access }: MessagesDeps,
  { playbook, path, userId, origins }: TakenMessage,
): Promise<string | undefined> {
  const called = plainPath(playbook);
  if (origins.includes(called)) return `'${playbook}' is among the playbooks that led to this message`;
  if (origins.length >= CHAIN_MAX) return `${CHAIN_MAX} playbooks led to this message by messages of one another`;
  const refusal = callRefusal(path, called);
  if (refusal !== undefined || userId === null) return refusal;
  const user = await access.user({ userId });
  if (user === undefined) return "The user in whose name the execution runs is not active";
  const { allowed } = decideUserAccess(user, "execute", called);
  return allowed ? undefined : `${user.email} may not execute '${playbook}', which was to tell people`;
}

/** The input with the link in its place. Without a public address there is no link, and the place is empty. */
function inputOf({ links, publicUrl }: MessagesDeps, { approvalId, number, input }: TakenMessage): JsonObject {
  const base = publicUrl();
  const url = base === undefined ? "" : `${base}/approve/${links.tokenOf({ approvalId, number })}`;
  // The place holder has no character that JSON writes otherwise, and so has an address.
  return JSON.parse(JSON.stringify(input).replaceAll(messageLink(approvalId, number), url)) as JsonObject;
}
