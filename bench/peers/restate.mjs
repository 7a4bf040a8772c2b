import "./with-resolvers.mjs";
import { randomBytes } from "node:crypto";
import { RestatePromise, serve, service } from "@restatedev/restate-sdk";

// The workloads on Restate: the endpoint that its server calls. Ready messages carry the port; requests do not come here,
// they go to the server's ingress.

const handlers = {
  chain: async (context, { steps }) => {
    for (let index = 0; index < steps; index += 1) await context.run(`s${index}`, () => index);
  },
  fan: async (context, { items }) => {
    await RestatePromise.all(Array.from({ length: items }, (_, index) => context.run("item", () => index)));
  },
  payload: async (context, { steps, bytes }) => {
    for (let index = 0; index < steps; index += 1) {
      await context.run(`s${index}`, () => ({ text: randomBytes(bytes / 2).toString("hex") }));
    }
  },
};

process.on("disconnect", () => process.exit());
const port = await serve({ services: [service({ name: "bench", handlers })], port: 0 });
process.send({ ready: { port } });
