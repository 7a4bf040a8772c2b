import { before } from "node:test";
import { createNatsKeyValue } from "../../src/adapters/nats/key-value.ts";
import { createPostgresKeyValue } from "../../src/adapters/postgres-key-value.ts";
import type { KeyValueStore } from "../../src/ports/key-value.ts";
import { openServiceDatabase } from "../repositories/service-database.ts";
import { recordLog } from "../support/engine/recorded-log.ts";
import { startTestNats } from "../support/servers/nats-server.ts";
import { exerciseKeyValue } from "./key-value-contract.ts";
import { openLink } from "./nats-pair.ts";

let inPostgres: { here: KeyValueStore; there: KeyValueStore };
let inNats: { here: KeyValueStore; there: KeyValueStore };
before(async () => {
  const store = createPostgresKeyValue(await openServiceDatabase());
  inPostgres = { here: store, there: store };
  // A deployment's NATS takes messages of 2 MB, as the largest value and what stands around it need.
  const nats = await startTestNats({ maxPayload: 2_000_000 });
  const open = async () => {
    const log = recordLog();
    const link = openLink(nats.url, log);
    await log.until(({ message }) => message.includes("connected to the broker"));
    return createNatsKeyValue({ link, now: Date.now });
  };
  inNats = { here: await open(), there: await open() };
});

exerciseKeyValue("key-value in PostgreSQL", () => inPostgres);
exerciseKeyValue("key-value in NATS", () => inNats);
