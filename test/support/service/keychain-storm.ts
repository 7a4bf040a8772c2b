import { systemClock } from "../../../src/adapters/system-clock.ts";
import { createSecrets } from "../../../src/engine/sealing/secrets.ts";
import { loadedReferences } from "../../../src/language/template/loaded-references.ts";
import { compileTemplate } from "../../../src/language/template/template.ts";
import { objectScope } from "../../../src/language/views/scope.ts";
import type { KeychainStore } from "../../../src/ports/keychain.ts";
import type { SecretSource } from "../../../src/ports/secret-source.ts";
import type { KeychainDefinition } from "../../../src/schema/words/playbook.ts";
import { openKeychain } from "../../../src/worker/secrets/keychain.ts";

/** What the workers of a storm share. */
export interface Storm {
  workers: number;
  catalogId: string;
  store: KeychainStore;
  secretSource: SecretSource;
  /** Of the entry `api`, whose `access_token` each of them reads. */
  definition: Omit<KeychainDefinition, "name" | "kind">;
}

/** So many workers, each with a command of its own, read one token at the same moment: what each of them got. */
export function readAtOnce({ workers, catalogId, store, secretSource, definition: more }: Storm) {
  const definition = { ...more, name: "api", kind: "oauth2" };
  const read = compileTemplate("{{ keychain.api.access_token }}");
  const work = async (index: number) => {
    const references = loadedReferences({ load: () => Promise.reject(new Error("nothing is stored")) });
    const keychain = openKeychain({
      entries: [{ definition, template: compileTemplate(definition) }],
      command: {
        command_id: String(index),
        catalog_id: catalogId,
        execution_id: String(1_000 + index),
        step: "a",
        context: { workload: {}, vars: {}, steps: {}, input: {} },
      },
      deps: {
        worker: `worker-${index}`,
        clock: systemClock,
        credentials: { find: () => Promise.resolve(undefined) },
        keychain: store,
        secretSource,
        log: () => undefined,
      },
      secrets: createSecrets(),
      render: (template) => Promise.resolve(template.source),
      signal: new AbortController().signal,
    });
    return await references.evaluate(() => read.render(objectScope({ keychain })));
  };
  return Promise.allSettled(Array.from({ length: workers }, (_, index) => work(index)));
}
