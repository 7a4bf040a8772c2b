import type { SecretSource } from "../../ports/secret-source.ts";
import type { SecretSourceOptions } from "./secret-source.ts";

/**
 * Tokens and secrets by requests. What makes them is loaded at the first one: most runs need none, and an HTTP client takes
 * longer to load than a short run lasts.
 */
export function createSecretSource(options: SecretSourceOptions): SecretSource {
  let loaded: Promise<SecretSource> | undefined;
  const load = () => {
    loaded ??= import("./secret-source.ts").then((module) => module.createRequestedSecrets(options));
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
