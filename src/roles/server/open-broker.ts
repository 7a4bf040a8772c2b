import { createInProcessBroker } from "../../adapters/in-process-broker.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Broker } from "../../ports/broker.ts";
import type { KeyValueStore } from "../../ports/key-value.ts";

/** The connection to the broker. */
export interface BrokerLink {
  isUp(): boolean;
  /** How long its answer takes, milliseconds; undefined while it is not connected, or does not answer. */
  latencyMs(): Promise<number | undefined>;
}

/** The broker, and what else comes with its connection. */
export interface OpenBroker {
  broker: Broker;
  /** Small results; undefined without NATS. Its buckets keep values until they are deleted. */
  resultValues: KeyValueStore | undefined;
  /** How the connection is at the moment; undefined without NATS, where there is nothing to be connected to. */
  link: BrokerLink | undefined;
}

/**
 * The broker of this process: NATS with `BROKER_URL`, else its own memory, which is enough for one server: others find by
 * polling what they had no notice of. The NATS driver is loaded only where it is used.
 */
export async function openBroker(
  config: Pick<Config, "brokerUrl">,
  logger: Logger,
  lifecycle: Lifecycle,
): Promise<OpenBroker> {
  if (config.brokerUrl === undefined) {
    const broker = createInProcessBroker(logger);
    lifecycle.add("the broker", () => broker.close());
    return { broker, resultValues: undefined, link: undefined };
  }
  const { openNatsLink } = await import("../../adapters/nats/connection.ts");
  const { createNatsBroker } = await import("../../adapters/nats/broker.ts");
  const { createNatsKeyValue } = await import("../../adapters/nats/key-value.ts");
  const link = openNatsLink(config.brokerUrl, logger);
  lifecycle.add("the connection to NATS", () => link.close());
  const broker = createNatsBroker({ link, logger });
  lifecycle.add("the broker", () => broker.close());
  const resultValues = createNatsKeyValue({ link, now: Date.now, maxAgeMs: 0 });
  return {
    broker,
    resultValues,
    link: { isUp: () => link.current() !== undefined, latencyMs: () => link.latencyMs() },
  };
}
