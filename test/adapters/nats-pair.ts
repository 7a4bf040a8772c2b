import { after } from "node:test";
import { createNatsBroker } from "../../src/adapters/nats/broker.ts";
import { type NatsLink, openNatsLink } from "../../src/adapters/nats/connection.ts";
import { createSecret } from "../../src/platform/crypto/secret.ts";
import type { Broker } from "../../src/ports/broker.ts";
import { type RecordedLog, recordLog } from "../support/engine/recorded-log.ts";

/** One server's end. */
export interface NatsEnd {
  broker: Broker;
  link: NatsLink;
  log: RecordedLog;
}

const links: NatsLink[] = [];
after(async () => {
  for (const link of links) await link.close();
});

/** A connection as a server of the service has it; it ends with the test file. */
export function openLink(url: string, log: RecordedLog = recordLog()): NatsLink {
  const link = openNatsLink(createSecret(url), log);
  links.push(link);
  return link;
}

/** A broker on a connection of its own, which looks at the stream every 50 ms. It may not be connected yet. */
export function openEnd(url: string, log: RecordedLog = recordLog()): NatsEnd {
  const link = openLink(url, log);
  return { broker: createNatsBroker({ link, logger: log, lookMs: 50 }), link, log };
}

/** Resolves when it hears and sends, after the `count`th time that it connected. */
export async function connected({ log }: Pick<NatsEnd, "log">, count = 1): Promise<void> {
  await log.until(() => log.matching("notices go to and come from other servers").length >= count);
}
