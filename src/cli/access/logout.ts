import { createSecret } from "../../platform/crypto/secret.ts";
import { GATEWAY_ROUTES } from "../../schema/routes/gateway.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliIo, EXIT } from "../command-line/command.ts";
import { callServer, unreachableReason } from "../server/client.ts";
import { type GatewayContext, writeContexts } from "../server/contexts.ts";
import { cleanText } from "../terminal/text.ts";
import { type LoginTarget, loginTarget } from "./login-context.ts";

/** `flow logout`: ends the session at the gateway, then forgets it here. */
export async function logOut(input: CliInput): Promise<number> {
  const { options, io } = input;
  const place = await loginTarget(input);
  const { session } = place.context;
  if (session === undefined) {
    io.stderr.write(`There is no session at ${place.context.gateway}.\n`);
    return EXIT.ok;
  }
  const isLocal = options["local"] === true;
  if (!isLocal) await endSession(place, session.token, io);
  const { session: _, ...context }: GatewayContext = place.context;
  const { contexts, name } = place;
  await writeContexts(io, { ...contexts, contexts: { ...contexts.contexts, [name]: context } });
  const still = isLocal ? `; the session itself lasts until ${session.expiresAt}` : "";
  io.stderr.write(`${cleanText(`${session.email} is logged out of ${context.gateway}${still}`)}.\n`);
  return EXIT.ok;
}

/**
 * A session that has already ended is no error. If the gateway is unavailable the session is kept, so that it can be ended
 * later.
 */
async function endSession({ target, context }: LoginTarget, token: string, io: CliIo): Promise<void> {
  try {
    const own = { ...target, token: createSecret(token) };
    await callServer(own, GATEWAY_ROUTES.logout, { signal: io.signal });
  } catch (error) {
    if (!(error instanceof FlowError) || error.code === "CANCELLED") throw error;
    if (error.code === "UNAUTHENTICATED") return;
    const what = `The session at ${context.gateway} could not be ended and is kept: ${unreachableReason(error)}`;
    throw new FlowError(error.code, `${what}. Try again, or forget it here alone: flow logout --local`, {
      cause: error,
    });
  }
}
