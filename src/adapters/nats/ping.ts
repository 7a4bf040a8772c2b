import { connect } from "nats";
import type { Secret } from "../../platform/crypto/secret.ts";
import { parseNatsAddress } from "../../platform/nats/address.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** Connects once and asks for a sign of life. Throws `FlowError` UNAVAILABLE that names the servers and never the password. */
export async function pingNats(url: Secret, timeoutMs: number): Promise<void> {
  const { servers, options } = parseNatsAddress(url.reveal());
  try {
    const connection = await connect({
      ...options,
      servers,
      name: "flow-doctor",
      reconnect: false,
      timeout: timeoutMs,
    });
    try {
      await connection.flush();
    } finally {
      await connection.close();
    }
  } catch (error) {
    const why = messageOf(error);
    throw new FlowError("UNAVAILABLE", `The broker at ${servers.join(",")} cannot be reached: ${why}`, {
      cause: error,
    });
  }
}
