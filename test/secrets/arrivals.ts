import assert from "node:assert/strict";
import type { TestHttpServer } from "../support/servers/http-server.ts";
import type { Canaries } from "./canary.ts";
import { bodiesOf, requestsOf } from "./echo-server.ts";

/** The secrets came to the server whole, after variables, arcs, loops, a child and stored results. */
export function assertArrived(server: TestHttpServer, { values, number }: Canaries): void {
  const { token = "", deep = "", password = "", granted = "", sensitive = "" } = values;
  const [called] = requestsOf(server, "/call");
  assert.deepEqual(bodiesOf(server, "/call"), [{ seen: token, saved: deep, pin: number }], "over arcs and variables");
  assert.equal(new URL(called?.url ?? "", server.origin).searchParams.get("token"), deep);
  assert.equal(called?.headers["authorization"], `Basic ${Buffer.from(`joe:${password}`).toString("base64")}`);
  assert.equal(called?.headers["x-token"], `Bearer ${granted}`);
  assert.equal(called?.headers["x-pin"], String(number));
  assert.equal(requestsOf(server, "/fetched")[0]?.headers["authorization"], `Bearer ${granted}`, "a requested token");
  const [missing] = server.requests.filter(({ url }) => url.startsWith("/missing"));
  assert.equal(decodeURIComponent(missing?.url.slice("/missing/".length) ?? ""), token);
  const each = (bodiesOf(server, "/each") as { one: string }[]).map(({ one }) => one).sort();
  assert.deepEqual(each, [token, granted, deep].sort(), "through a loop");
  assert.deepEqual(bodiesOf(server, "/artifact"), [{ first: `${token}0`, saved: deep }], "out of a stored result");
  const [child] = requestsOf(server, "/child");
  assert.deepEqual(bodiesOf(server, "/child"), [{ token, saved: deep, nested: { deep: [deep] } }], "in a child");
  assert.equal(child?.headers["authorization"], `Bearer ${granted}`);
  const own = `own-${[...sensitive].reverse().join("")}-own`;
  assert.deepEqual(
    bodiesOf(server, "/hidden"),
    [{ value: sensitive, own, amount: 12345678, token }],
    "sensitive results",
  );
}
