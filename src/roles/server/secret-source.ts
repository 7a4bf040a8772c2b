import { systemClock } from "../../adapters/system-clock.ts";
import type { Config } from "../../platform/config/config.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { SecretSource } from "../../ports/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import type { SecretSourceOptions } from "../../tools/secrets/secret-source.ts";

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

/**
 * Tokens and secrets by requests. What makes them is loaded at the first one: most runs need none, and an HTTP client takes
 * longer to load than a short run lasts.
 */
export function createSecretSource(options: SecretSourceOptions): SecretSource {
  let loaded: Promise<SecretSource> | undefined;
  const load = () => {
    loaded ??= import("../../tools/secrets/secret-source.ts").then((module) => module.createRequestedSecrets(options));
    return loaded;
  };
  return {
    obtain: async (...wanted) => await (await load()).obtain(...wanted),
    renew: async (...wanted) => await (await load()).renew(...wanted),
    token: async (...wanted) => await (await load()).token(...wanted),
    forget: (token) => void loaded?.then((source) => source.forget(token)).catch(() => undefined),
    close: async () => await (await loaded)?.close(),
  };
}
