import type { Config } from "../platform/config/config.ts";
import { FlowError } from "../schema/words/errors.ts";
import { isGatewayWanted } from "./all.ts";
import { gatewayProblems } from "./gateway/check-settings.ts";
import { assertFree, type ListenAt } from "./http/listen.ts";
import { readGivenCredentials } from "./server/given-credentials.ts";
import { storeProblems } from "./server/result-stores.ts";
import { checkAccess } from "./server/server.ts";

/** What is to be started. */
export interface StartToCheck {
  role: "server" | "all" | "gateway";
  config: Config;
  host: string;
  /** Of the server, or of a gateway by itself. */
  port: number;
}

/**
 * Looks at the settings and the addresses of every role that is about to be started, before any of them makes or opens
 * anything: a typing error is reported at once, and no half-made database is left behind.
 *
 * Throws `FlowError` INVALID_SETTING, and FILE_UNREADABLE for a file of credentials that cannot be read.
 */
export async function checkStart({ role, config, host, port }: StartToCheck): Promise<void> {
  const hasServer = role !== "gateway";
  const hasGateway = role === "gateway" || (role === "all" && isGatewayWanted(config));
  if (hasServer) checkAccess(config, host);
  const problems = [
    ...(hasServer ? storeProblems(config) : []),
    ...(hasServer ? (await readGivenCredentials(config)).problems : []),
    ...(hasGateway ? gatewayProblems(config, host) : []),
  ];
  if (problems.length > 0) throw new FlowError("INVALID_SETTING", problems.join("\n"));
  const addresses: ListenAt[] = hasServer ? [{ host, port }] : [];
  if (hasGateway) {
    const internal = { host: config.gatewayInternalHost ?? host, port: config.gatewayInternalPort };
    addresses.push({ host, port: role === "gateway" ? port : config.gatewayPort, portBy: "FLOW_GATEWAY_PORT" });
    addresses.push({ ...internal, portBy: "FLOW_GATEWAY_INTERNAL_PORT" });
  }
  for (const address of addresses) await assertFree(address);
}
