import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { before, test } from "node:test";
import type { Progress } from "@modelcontextprotocol/sdk/types.js";
import { connectMcpClient } from "../../support/servers/mcp-client.ts";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { PAGE, testGateway } from "../../support/service/gateway-app.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* The MCP server behind a gateway: what a person's client gets with the token of their session. */

const api = await openApi();
const work = workWith(api);
const gateway = testGateway({
  async answer({ method, path, headers, body }) {
    // The gateway of this test has a canary for a token.
    const believed = { ...headers, authorization: `Bearer ${TOKENS.operator}` };
    const response = await api.guarded.request(path, { method, headers: believed, ...(body !== "" && { body }) });
    const { status, body: stream } = response;
    const answer = stream === null ? Readable.from([]) : Readable.fromWeb(stream as never);
    return { status, headers: Object.fromEntries(response.headers), body: answer };
  },
});

before(async () => {
  for (const path of ["team/a", "other/a"]) await work.register(path, ONE_STEP, ", agent: true");
});

test("a person's client lists and calls the agents that their roles allow, from a page that the gateway knows", async () => {
  const token = randomBytes(32).toString("base64url");
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "team/*", can: ["execute", "view"] }]);
  const hash = createHash("sha256").update(token).digest("hex");
  await api.database.sql`update auth.sessions set token_sha256 = ${hash} where user_id = ${user.userId}`;
  const client = await connectMcpClient(gateway.app, { headers: { authorization: `Bearer ${token}`, origin: PAGE } });
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name).filter((name) => !name.startsWith("flow___")),
    ["team__a"],
  );
  const told: (string | undefined)[] = [];
  const asked = { timeout: 600_000, onprogress: ({ message }: Progress) => told.push(message) };
  const answer = client.callTool({ name: "team__a" }, undefined, asked);
  const [command] = await work.claim("w");
  assert.ok(command !== undefined);
  assert.equal((await work.finish("w", command, { ok: true })).status, 202);
  assert.deepEqual((await answer).structuredContent, {
    execution_id: command.execution_id,
    status: "COMPLETED",
    result: { ok: true },
  });
  assert.deepEqual(told, ["step 'start' began", "step 'start' completed"]);
  const { body } = await work.get(`/api/executions/${command.execution_id}`);
  assert.equal((body as Body)["path"], "team/a");
});
