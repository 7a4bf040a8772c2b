import { Writable } from "node:stream";
import { after } from "node:test";
import { createIds } from "../../src/platform/ids.ts";
import { createLogger } from "../../src/platform/logger.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createSecret } from "../../src/platform/secret.ts";
import { type Database, openDatabase } from "../../src/repositories/database.ts";
import { unavailable } from "../../src/repositories/failure.ts";
import { migrate } from "../../src/repositories/migrate.ts";
import { createApp } from "../../src/routes/app.ts";
import { createCatalog } from "../../src/services/catalog.ts";
import { createTestDatabase } from "./postgres.ts";

/** Tokens of {@link Api.guarded}. */
export const TOKENS = { operator: "operator-token-1", worker: "worker-token-2" };

/** The server's API on a database of its own, without a port. */
export interface Api {
  /** As the embedded default has it: on loopback, open. */
  open: ReturnType<typeof createApp>;
  /** With tokens, beyond loopback. */
  guarded: ReturnType<typeof createApp>;
  database: Database;
  /** Every log line so far. */
  log(): string;
}

/** An API on a database of its own. Await it at the top of a test file: it is gone when the file's tests are over. */
export async function openApi(): Promise<Api> {
  const { url } = await createTestDatabase();
  const database = openDatabase(url);
  after(() => database.close());
  await migrate(database);
  return buildApi(database);
}

/** The API over a database, whatever its state. */
export function buildApi(database: Database): Api {
  let written = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written += String(chunk);
      done();
    },
  });
  const metrics = createMetrics();
  const onRegistered = ({ kind, unchanged }: { kind: string; unchanged: boolean }) =>
    metrics.catalogRegistered(kind, unchanged ? "unchanged" : "created");
  const shared = {
    catalog: createCatalog({ database, onRegistered }),
    logger: createLogger("debug", stream),
    metrics,
    version: "0.0.0-test",
    newRequestId: createIds(Date.now),
    unavailable,
  };
  const tokens = { server: createSecret(TOKENS.operator), worker: createSecret(TOKENS.worker) };
  return {
    open: createApp({ ...shared, tokens: { server: undefined, worker: undefined }, loopback: true }),
    guarded: createApp({ ...shared, tokens, loopback: false }),
    database,
    log: () => written,
  };
}

/** What an answer's body may be read as in a test. */
export type Body = Record<string, unknown>;

/** A JSON request. */
export function posted(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
}

/** A small valid playbook. `tag` makes its text differ. */
export function playbook(path: string, tag = "a", metadata = ""): string {
  return `apiVersion: flow/v2
kind: Playbook
metadata: { name: "${path.split("/").at(-1)}", path: "${path}"${metadata} }
workload: { tag: ${tag} }
workflow:
  - step: start
    tool: { kind: noop }
`;
}
