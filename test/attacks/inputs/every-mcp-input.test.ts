import assert from "node:assert/strict";
import { before, test } from "node:test";
import { agentToolName } from "../../../src/services/mcp/tool.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { openApi, TOKENS } from "../../support/service/api.ts";
import { type Attacked, type Attacker, createAttacked, OURS, PATHS, WHO } from "../support/attacked.ts";
import { canaryOf, isPlain, type Named, textsOf, valuesOf } from "../support/inputs.ts";
import { sampleOf } from "../support/sample.ts";

/*
 * What messages of MCP clients name: the agent of a tool, the execution of a resource, a place in a list, and anything in the
 * arguments of an own tool; in forms of every kind (support/sample.ts), by every kind of user. No answer may hold anything of a path
 * that its caller may not view, and nothing of a path may change that they may not execute.
 */

const api = await openApi();
const { work, put, refOf } = storedResults(api);
let attacked: Attacked;
before(async () => {
  attacked = await createAttacked({ work, put, refOf }, api.database, ", agent: true");
  void runCalls().catch(() => undefined);
});
/** Runs what calls of own tools start, because they are answered when it has ended; until the API is closed, which throws. */
async function runCalls(): Promise<never> {
  for (;;) for (const command of await work.claim("runner", 100)) await work.finish("runner", command);
}

/** What the answer to a read of an execution says of its path. */
function detailOf(path: string): string {
  return `\\"path\\":\\"${path}\\"`;
}

/** A message as a JSON text, with what it tries. */
interface Message {
  what: string;
  isPlain: boolean;
  body: string;
}

function message(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`;
}

/** Every message in which something names one of these things. */
function messagesAbout(of: Named, own: Named): Message[] {
  const trying = (what: string, body: string): Message => ({ what, isPlain: true, body });
  const inForm = (what: string, form: string, body: string): Message => ({
    what: `${what}, ${form}`,
    isPlain: isPlain(form),
    body,
  });
  const names = [agentToolName, String].flatMap((nameOf) =>
    Object.entries(valuesOf(nameOf(of.path), nameOf(own.path))),
  );
  const uris = Object.entries(textsOf(of.executionId, own.executionId)).flatMap(([form, text]) => [
    [form, `flow://executions/${text}`],
    [`${form}, in upper case`, `FLOW://EXECUTIONS/${text}`],
    [`${form}, below another`, `flow://executions/${own.executionId}/../${text}`],
  ]);
  const others = [
    of.ref,
    `flow://results/${of.ref}`,
    `flow://catalog/${of.path}`,
    `flow://credentials/${of.credential}`,
  ];
  const calls = (name: string, rest: string) => message("tools/call", `{"name":${name}${rest}}`);
  const reads = (uri: string) => message("resources/read", JSON.stringify({ uri }));
  const [its, ownName] = [of, own].map(({ path }) => JSON.stringify(agentToolName(path)));
  return [
    ...names.map(([form, json]) => inForm("tools/call", form, calls(json, ""))),
    trying("tools/call, its name twice", calls(`${ownName}`, `,"name":${its}`)),
    trying("tools/call, its name in a prototype", calls(`${ownName}`, `,"__proto__":{"name":${its}}`)),
    trying("several calls in one", `[${calls(`${ownName}`, "")},${calls(`${its}`, "")}]`),
    ...uris.map(([form = "", uri = ""]) => inForm("resources/read", form, reads(uri))),
    ...others.map((uri) => trying("resources/read, another kind", reads(uri))),
    ...["tools/list", "resources/list", "resources/templates/list"].flatMap((method) => [
      trying(method, message(method, "{}")),
      ...Object.entries(valuesOf(of.path, own.path)).map(([form, json]) =>
        inForm(`${method}, cursor`, form, message(method, `{"cursor":${json}}`)),
      ),
    ]),
  ];
}

async function send({ user }: Attacker, body: string): Promise<{ status: number; text: string }> {
  const headers = {
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    authorization: `Bearer ${TOKENS.operator}`,
    "x-flow-session": user.tokenSha256,
  };
  const response = await api.guarded.request("/mcp", { method: "POST", headers, body });
  return { status: response.status, text: await response.text() };
}

for (const who of WHO) {
  test(`${who}: no message of an MCP client gives or starts what is beyond their rows`, {
    timeout: 120_000,
  }, async (context) => {
    const { things, users, stateOf } = attacked;
    const sample = sampleOf(who);
    context.diagnostic(sample.told);
    const attacker = users.find((one) => one.who === who) ?? assert.fail(who);
    const own = things.get(OURS) ?? assert.fail(OURS);
    const kept = PATHS.filter((path) => !attacker.changes.includes(path));
    const before = await Promise.all(kept.map(stateOf));
    const hidden = PATHS.filter((path) => !attacker.views.includes(path)).flatMap((path) => [
      canaryOf(path),
      detailOf(path),
    ]);
    let shown = 0;
    for (const path of kept) {
      for (const { what, body } of sample.of(messagesAbout(things.get(path) ?? assert.fail(path), own))) {
        const { status, text } = await send(attacker, body);
        const told = `${sample.told}: ${who}: ${what}: ${body}: ${status} ${text.slice(0, 500)}`;
        for (const secret of hidden) assert.ok(!text.includes(secret), told);
        assert.ok(status < 500, told);
        if (text.includes(detailOf(path))) shown += 1;
      }
    }
    assert.deepEqual(await Promise.all(kept.map(stateOf)), before, who);
    if (kept.some((path) => attacker.views.includes(path))) assert.ok(shown > 0, "a path that may be viewed is shown");
  });
}
