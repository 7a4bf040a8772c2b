import assert from "node:assert/strict";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Progress } from "@modelcontextprotocol/sdk/types.js";
import { appFetch, connectMcpClient } from "../../support/servers/mcp-client.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

/* The server as an MCP server, asked by the client of the official library. */

const api = await openApi();
const work = workWith(api);
/** No test waits for as long as a client does by itself. */
const PATIENT = { timeout: 600_000 };
const AGENT = ", agent: true";

before(async () => {
  await work.register("ops/restart", TWO_STEPS, `${AGENT}, description: Restarts a pod`);
  await work.register("ops/plain", ONE_STEP);
  await work.register("ops/hidden", ONE_STEP, `${AGENT}, terminal: { visible: false }`);
  await work.register("ops/private", ONE_STEP, `${AGENT}, exposes_as_mcp: false`);
  await work.register("ops/on_call_", ONE_STEP, AGENT);
  await work.register(
    "ops/declared",
    ONE_STEP,
    `${AGENT}, exposes_as_mcp: {
      title: Declared, description: As it says,
      input_schema: { type: object, properties: { pod: { type: string }, replicas: { type: integer, minimum: 1 } }, required: [pod] },
      output_schema: { type: object, properties: { step: { type: string } } },
      annotations: { readOnlyHint: true } }`,
  );
});

/** Claims the next command and ends it. */
async function finishNext(value?: unknown): Promise<Claimed> {
  const [command] = await work.claim("w");
  assert.ok(command !== undefined);
  const { status, body } = await work.finish("w", command, value ?? { step: command.step });
  assert.equal(status, 202, JSON.stringify(body));
  return command;
}

/** Agents are looked at every other second. */
const nextLook = () => sleep(2_000);

async function executions(path: string): Promise<Body[]> {
  const { body } = await work.get(`/api/executions?path=${encodeURIComponent(path)}`);
  return body["executions"] as Body[];
}

test("each visible agent is a tool, with its inputs as JSON Schema; playbooks and hidden agents are not listed", async () => {
  const client = await connectMcpClient(api.open);
  assert.deepEqual(client.getServerCapabilities(), { tools: { listChanged: true }, resources: {} });
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name).filter((name) => !name.startsWith("flow___")),
    ["ops__declared", "ops__on_call___d113d7f3273c773b", "ops__restart"],
  );
  const restart = tools.find(({ name }) => name === "ops__restart");
  assert.deepEqual([restart?.title, restart?.description], ["restart", "Restarts a pod"]);
  assert.deepEqual(restart?.inputSchema, {
    type: "object",
    properties: { who: { type: "string", default: "world" } },
  });
  const declared = tools.find(({ name }) => name === "ops__declared");
  assert.deepEqual([declared?.title, declared?.description], ["Declared", "As it says"]);
  assert.deepEqual(declared?.inputSchema.required, ["pod"]);
  assert.deepEqual(declared?.annotations, { readOnlyHint: true });
});

test("a call runs the agent's playbook, reports progress, and returns the result as structured content", async () => {
  const client = await connectMcpClient(api.open);
  const told: Progress[] = [];
  const call = { name: "ops__restart", arguments: { who: "me" } };
  const answer = client.callTool(call, undefined, { ...PATIENT, onprogress: (one) => told.push(one) });
  const { execution_id: id } = await finishNext();
  await finishNext();
  const { content, structuredContent, isError } = await answer;
  assert.equal(isError, undefined);
  assert.deepEqual(structuredContent, { execution_id: id, status: "COMPLETED", result: { step: "end" } });
  const { body: listed } = await work.get(`/api/executions?q=${encodeURIComponent(`by:mcp id:${id}`)}`);
  const [shown] = listed["executions"] as Body[];
  assert.deepEqual(shown?.["started_by"], { kind: "mcp", id: null, name: "operator" });
  assert.deepEqual(JSON.parse((content as { text: string }[])[0]?.text ?? ""), structuredContent);
  assert.deepEqual(
    told.map(({ message }) => message),
    ["step 'start' began", "step 'start' completed", "step 'end' began", "step 'end' completed"],
  );
  assert.ok(told.every(({ progress }, at) => progress > (told[at - 1]?.progress ?? 0)));
  assert.ok(told.every(({ total, progress }) => total === 100 && progress < 100));
  assert.deepEqual((await work.get(`/api/executions/${id}`)).body["workload"], { who: "me" });
});

test("an agent whose path is no name is called by a name with a digest", async () => {
  const client = await connectMcpClient(api.open);
  const answer = client.callTool({ name: "ops__on_call___d113d7f3273c773b" }, undefined, PATIENT);
  await finishNext();
  assert.equal((await answer).isError, undefined);
});

test("an execution that fails is an error of the tool, with its id and why", async () => {
  const client = await connectMcpClient(api.open);
  const answer = client.callTool({ name: "ops__restart" }, undefined, PATIENT);
  const [command] = await work.claim("w");
  assert.ok(command !== undefined);
  const { command_id, execution_id, attempt, step } = command;
  const error = { kind: "not_found", code: "HTTP_404", message: "There is no such pod", retryable: false };
  const failed = { event_type: "command.failed", command_id, execution_id, attempt, step, error };
  assert.equal((await work.post("/api/events/batch", { worker: "w", events: [failed] })).status, 202);
  const { content, structuredContent, isError } = await answer;
  assert.equal(isError, true);
  const [{ text } = { text: "" }] = content as { text: string }[];
  assert.match(text, new RegExp(`Execution ${execution_id} of 'ops/restart' has ended: FAILED: There is no such pod`));
  assert.deepEqual(
    [(structuredContent as Body)["execution_id"], (structuredContent as Body)["status"]],
    [execution_id, "FAILED"],
  );
});

test("arguments that a declared schema refuses start nothing, and the model reads what to mend", async () => {
  const client = await connectMcpClient(api.open);
  const { isError, content } = await client.callTool({ name: "ops__declared", arguments: { replicas: 0.5 } });
  assert.equal(isError, true);
  const [{ text } = { text: "" }] = content as { text: string }[];
  assert.match(text, /Nothing was started.*arguments\.pod is required.*arguments\.replicas must be integer/);
  assert.deepEqual(await executions("ops/declared"), []);
});

test("an unknown tool, a hidden agent and a playbook are all unknown tools", async () => {
  const client = await connectMcpClient(api.open);
  for (const name of ["no__such", "ops__hidden", "ops__private", "ops__plain", "x", "", "ops___0123456789abcdef"]) {
    await assert.rejects(client.callTool({ name }), /There is no tool/, name);
  }
});

test("a client that cancels a call cancels its execution", async () => {
  const client = await connectMcpClient(api.open);
  const cancelling = new AbortController();
  const answer = client.callTool({ name: "ops__restart" }, undefined, { ...PATIENT, signal: cancelling.signal });
  const [command] = await work.claim("w");
  cancelling.abort("changed my mind");
  await assert.rejects(answer, /changed my mind/);
  const { body } = await work.get(`/api/executions/${command?.execution_id}/result?wait_ms=30000`);
  assert.equal(body["status"], "CANCELLED");
  const { body: log } = await work.get(
    `/api/executions/${command?.execution_id}/events?event_type=execution.cancelled`,
  );
  assert.match(JSON.stringify(log), /Cancelled by the MCP client: changed my mind/);
});

test("one client's cancellation is nothing to another's call with the same number", async () => {
  const [one, other] = [await connectMcpClient(api.open), await connectMcpClient(api.open)];
  const answer = one.callTool({ name: "ops__restart" }, undefined, PATIENT);
  const { execution_id: id } = await finishNext();
  for (const requestId of [0, 1, 2, 3]) {
    await other.notification({ method: "notifications/cancelled", params: { requestId } });
  }
  await finishNext();
  assert.equal(((await answer).structuredContent as Body)["execution_id"], id);
});

test("a connection that breaks off takes nothing away: the client goes on with the same execution", async () => {
  const send = appFetch(api.open);
  const resumed: string[] = [];
  const client = await connectMcpClient(api.open, {
    async fetch(input, init) {
      const lastEventId = new Headers(init?.headers).get("last-event-id");
      if (lastEventId !== null) resumed.push(lastEventId);
      const response = await send(input, init);
      const isCall = typeof init?.body === "string" && init.body.includes("tools/call");
      return isCall ? brokenOff(response) : response;
    },
  });
  const told: Progress[] = [];
  const asked = { ...PATIENT, onprogress: (one: Progress) => told.push(one) };
  const answer = client.callTool({ name: "ops__restart" }, undefined, asked);
  const { execution_id: id } = await finishNext();
  await finishNext();
  assert.equal(((await answer).structuredContent as Body)["execution_id"], id);
  assert.ok(resumed.length > 0);
  assert.equal(told.at(-1)?.message, "step 'end' completed");
  assert.ok(
    told.every(({ progress }, at) => progress > (told[at - 1]?.progress ?? 0)),
    JSON.stringify(told),
  );
});

/** The answer as it is up to its first part, and then an end. */
function brokenOff({ body, status, headers }: Response): Response {
  const reader = body?.getReader();
  let isFirst = true;
  const cut = new ReadableStream({
    async pull(controller) {
      const part = isFirst ? await reader?.read() : undefined;
      isFirst = false;
      if (part?.value !== undefined) return controller.enqueue(part.value);
      controller.close();
      await reader?.cancel();
    },
  });
  return new Response(cut, { status, headers });
}

test("a client is notified of a new agent", async () => {
  let heard: (() => void) | undefined;
  const changed = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const client = await connectMcpClient(api.open, { onToolsChanged: () => heard?.() });
  // No event says when the client begins to listen, and what was registered before is no change to it.
  let isHeard = false;
  const hearing = changed.then(() => {
    isHeard = true;
  });
  for (let tag = 0; !isHeard; tag += 1) {
    await work.register("ops/late", ONE_STEP, `${AGENT}, description: "${tag}"`);
    await Promise.race([hearing, nextLook()]);
  }
  const { tools } = await client.listTools();
  assert.ok(tools.some(({ name }) => name === "ops__late"));
});

test("more agents than a page holds are listed page by page, each once", async () => {
  for (let count = 0; count < 55; count += 1) await work.register(`many/a${count}`, ONE_STEP, AGENT);
  const client = await connectMcpClient(api.open);
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map(({ name }) => name).filter((name) => name.startsWith("many__")));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.equal(names.length, 55);
  assert.equal(new Set(names).size, 55);
  await assert.rejects(client.listTools({ cursor: "nonsense" }), /not one that this list gave out/);
});

test("what is sealed is shown as a mask, in results and in executions", async () => {
  const client = await connectMcpClient(api.open);
  const answer = client.callTool({ name: "ops__declared", arguments: { pod: "a" } }, undefined, PATIENT);
  const { execution_id: id } = await finishNext({ step: "Bearer [sealed:k1:Zm9v]" });
  const { structuredContent } = await answer;
  assert.deepEqual((structuredContent as Body)["result"], { step: "Bearer [secret]" });
  const { contents } = await client.readResource({ uri: `flow://executions/${id}` });
  const shown = JSON.parse((contents[0] as { text: string }).text);
  assert.deepEqual([shown.status, shown.result], ["COMPLETED", { step: "Bearer [secret]" }]);
});

test("executions are resources: an unknown one is not found", async () => {
  const client = await connectMcpClient(api.open);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.deepEqual(
    resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    ["flow://executions/{execution_id}"],
  );
  for (const uri of ["flow://executions/7", "flow://executions/x", "file:///etc/passwd"]) {
    await assert.rejects(client.readResource({ uri }), /There is no/, uri);
  }
});
