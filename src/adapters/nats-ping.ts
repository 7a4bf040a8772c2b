import { connect } from "nats";
import { parseNatsAddress } from "../platform/nats-address.ts";
import type { Secret } from "../platform/secret.ts";
import { FlowError, messageOf } from "../schema/errors.ts";

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
