import { before } from "node:test";
import { createInProcessBroker } from "../../src/adapters/in-process-broker.ts";
import { startTestNats, type TestNats } from "../support/servers/nats-server.ts";
import { exerciseBroker } from "./broker-contract.ts";
import { connected, openEnd } from "./nats-pair.ts";

let nats: TestNats;
let withoutJetStream: TestNats;
before(async () => {
  nats = await startTestNats();
  withoutJetStream = await startTestNats({ jetStream: false });
});

exerciseBroker("in one process", (log) => {
  const broker = createInProcessBroker(log);
  return Promise.resolve({ here: broker, there: broker, close: () => broker.close() });
});

const overNats = (server: () => TestNats) => async (log: Parameters<Parameters<typeof exerciseBroker>[1]>[0]) => {
  const ends = [openEnd(server().url), openEnd(server().url, log)] as const;
  await Promise.all(ends.map((end) => connected(end)));
  return {
    here: ends[0].broker,
    there: ends[1].broker,
    close: async () => {
      for (const { broker, link } of ends) {
        await broker.close();
        await link.close();
      }
    },
  };
};

exerciseBroker(
  "over NATS",
  overNats(() => nats),
);
exerciseBroker(
  "over NATS without JetStream",
  overNats(() => withoutJetStream),
);
