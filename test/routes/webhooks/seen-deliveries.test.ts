import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* What people see of a webhook's deliveries: each with its verdict, those that never became a fire too. */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);

await work.post("/api/credentials", {
  ...{ name: "hub", type: "custom", data: { secret: "s3cret" }, meta: { playbooks: ["seen/**"] } },
});
const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: h, path: seen/pushed }
workload: { n: 0 }
workflow: [{ step: start, tool: { kind: noop } }]
triggers:
  - name: pushed
    webhook: { path: seen, verify: { preset: github, secret: hub }, when: "{{ body.ref == 'main' }}" }
    input: { n: "{{ 1 / body.n }}" }
  - name: at_six
    schedule: { cron: "0 6 * * *" }
`;
assert.equal((await work.post("/api/catalog/register", { content })).status, 200);

async function deliver(body: string, headers: Record<string, string> = {}): Promise<Body> {
  const signature = `sha256=${createHmac("sha256", "s3cret").update(body).digest("hex")}`;
  const init = { "content-type": "application/json", "x-hub-signature-256": signature, ...headers };
  const answer = await api.guarded.request("/hooks/seen", { method: "POST", body, headers: init });
  return (await answer.json()) as Body;
}

async function deliveries(name: string, query = ""): Promise<Body> {
  await api.service.deliveries.close();
  const [trigger] = (await work.get(`/api/triggers?path=seen/pushed&name=${name}`)).body["triggers"] as Body[];
  return (await work.get(`/api/triggers/${trigger?.["trigger_id"]}/deliveries${query}`)).body;
}

test("each delivery is listed with its verdict, the words for it and what it has started, newest first, without its body", async () => {
  const { execution_id: id } = await deliver('{"ref":"main","n":1}', { "x-github-delivery": "d-1" });
  await deliver('{"ref":"main","n":1}', { "x-github-delivery": "d-1" });
  await deliver('{"ref":"draft"}');
  await deliver('{"ref":"main","n":"none"}');
  await deliver('{"ref":"main"}', { "x-hub-signature-256": `sha256=${"0".repeat(64)}` });
  await deliver("{ not JSON");
  await deliver("x".repeat(1_048_577));
  const all = (await deliveries("pushed"))["deliveries"] as Body[];
  assert.deepEqual(
    all.map((one) => [one["verdict"], one["refused"], one["execution_id"], one["bytes"], one["count"]]),
    [
      ["too_large", true, undefined, undefined, 1],
      ["unreadable", true, undefined, 10, 1],
      ["not_verified", true, undefined, 14, 1],
      ["failed", true, undefined, 25, 1],
      ["skipped", false, undefined, 15, 1],
      ["repeated", false, id, 20, 1],
      ["started", false, id, 20, 1],
    ],
  );
  assert.deepEqual(
    all.map(({ reason }) => String(reason).replace(/: .*/, "")),
    [
      "Its body is longer than 1,048,576 bytes",
      "Its body broke off, or is not what its content type says",
      "its signature is of another secret or body",
      "Its input could not be made",
      "Its `when` does not hold",
      "undefined",
      "undefined",
    ],
  );
  assert.doesNotMatch(JSON.stringify(all), /not JSON|s3cret|draft/);
});

test("refused ones and those that were taken are listed alone, page by page; a schedule has none", async () => {
  const page = await deliveries("pushed", "?refused=false&limit=2");
  assert.equal((page["deliveries"] as Body[]).length, 2);
  const rest = await deliveries("pushed", `?refused=false&limit=2&cursor=${page["next_cursor"]}`);
  assert.deepEqual(
    [(rest["deliveries"] as Body[]).map(({ verdict }) => verdict), rest["next_cursor"]],
    [["started"], null],
  );
  assert.equal(((await deliveries("pushed", "?refused=true"))["deliveries"] as Body[]).length, 4);
  assert.deepEqual(await deliveries("at_six"), { deliveries: [], next_cursor: null });
  assert.equal((await work.get("/api/triggers/4711/deliveries")).status, 404);
});
