import type { Config } from "../../platform/config/config.ts";
import { isLoopback } from "../../platform/http/loopback.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { shortTokens } from "../http/short-tokens.ts";

/**
 * Refuses settings that would leave a gateway open, and logs what does not work with the others. Throws `FlowError`
 * INVALID_SETTING that lists every reason.
 */
export function checkGateway(config: Config, host: string, logger: Logger): void {
  const problems = gatewayProblems(config, host);
  if (problems.length > 0) throw new FlowError("INVALID_SETTING", problems.join("\n"));
  if (config.authBypass) {
    const what = `everyone who can reach ${host} acts as the operator, without a login`;
    logger.warn({}, `GATEWAY_AUTH_BYPASS=true: AUTHENTICATION IS OFF, ${what}. Never use it where others work`);
  }
  if (config.idpDomains.length === 0 && config.idpProviders.size === 0 && !config.authBypass)
    logger.warn({}, "no logins are possible: set FLOW_IDP_DOMAINS and FLOW_IDP_AUDIENCE, or FLOW_IDP_CONFIG");
  if (config.corsOrigins === undefined && config.gatewayPublicUrl === undefined && config.publicUrl === undefined)
    logger.warn({}, "no page but the gateway's own may call: set CORS_ALLOWED_ORIGINS for pages elsewhere");
  if (!isLoopback(host) && config.gatewayPublicUrl === undefined && config.publicUrl === undefined)
    logger.warn(
      {},
      "the cookie of sessions has no __Host- prefix: set GATEWAY_PUBLIC_URL to the https address of the gateway",
    );
}

/** Why a gateway with these settings would be open to the public, a sentence each. */
export function gatewayProblems(config: Config, host: string): string[] {
  const { authBypass, authBypassAnywhere, idpDomains, idpAudience, serverToken, gatewayInternalHost } = config;
  const isOpen = [host, gatewayInternalHost ?? host].some((address) => !isLoopback(address));
  const problems: string[] = [];
  if (idpDomains.length > 0 && idpAudience === undefined)
    problems.push("FLOW_IDP_DOMAINS needs FLOW_IDP_AUDIENCE: else tokens of any application would log in here");
  if (authBypass && !isLoopback(host) && !authBypassAnywhere) {
    const why = `GATEWAY_AUTH_BYPASS=true on ${host}: everyone who can reach it could run anything`;
    problems.push(`${why}. Take it away, listen on 127.0.0.1, or set FLOW_GATEWAY_AUTH_BYPASS_ANYWHERE=true`);
  }
  if (isOpen && serverToken === undefined && !authBypass) {
    const why =
      "the server would accept any caller's claim about whose session it is, and playbooks' callbacks could be forged";
    problems.push(`A gateway beyond this machine needs FLOW_SERVER_TOKEN, the server's: without it ${why}`);
  }
  const short = shortTokens({ FLOW_SERVER_TOKEN: serverToken });
  // The token of callbacks is made of it, and with a server on loopback this gateway is the first that others reach.
  if (isOpen && short !== undefined) problems.push(`Refused to listen beyond this machine: ${short}`);
  return problems;
}
