import { systemClock } from "../../adapters/system-clock.ts";
import type { Config } from "../../platform/config/config.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { SecretSource } from "../../ports/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { createSecretSource } from "../../tools/secrets/create-secret-source.ts";

/** What requests tokens and secrets, as the settings say. `allowPrivate`: the private addresses that tools may reach. */
export function openSecretSource(config: Config, allowPrivate: "all" | readonly string[]): SecretSource {
  const { googleUrl, awsUrl, azureUrl, azureLoginUrl, metadataUrl, adcAccessToken } = config;
  return createSecretSource({
    allowPrivate,
    proxyOf: proxyRules(config),
    addresses: {
      ...defined({ googleUrl, awsUrl, azureUrl, azureLoginUrl, metadataUrl }),
    },
    ...(adcAccessToken !== undefined && { adcAccessToken: adcAccessToken.reveal() }),
    requestMs: config.keychainRequestMs,
    now: systemClock.now,
  });
}
