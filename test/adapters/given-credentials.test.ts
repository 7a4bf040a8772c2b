import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { listGivenCredentials } from "../../src/adapters/given-credentials.ts";

const CANARY = "canary-77";
const bearer = (token: string) => ({ type: "bearer", data: { token } });

async function fileWith(t: TestContext, content: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-given-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "credentials.json");
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

test("credentials come from the file by their names, and from variables by theirs in small letters", async (t) => {
  const file = await fileWith(t, { "api-eu": { ...bearer("f"), tags: ["a"] }, pg: bearer("p") });
  const environment = {
    FLOW_CREDENTIAL_PG_DEMO: JSON.stringify(bearer("e")),
    FLOW_CREDENTIAL_EMPTY: " ",
    PATH: "/bin",
  };
  assert.deepEqual(await listGivenCredentials(file, environment), [
    { place: `${file}: api-eu`, body: { ...bearer("f"), tags: ["a"], name: "api-eu" } },
    { place: `${file}: pg`, body: { ...bearer("p"), name: "pg" } },
    { place: "FLOW_CREDENTIAL_PG_DEMO", body: { ...bearer("e"), name: "pg_demo" } },
  ]);
});

test("a variable wins over the file's credential that it stands for, and may say its name itself", async (t) => {
  const file = await fileWith(t, { "api-eu": bearer("file") });
  const environment = {
    FLOW_CREDENTIAL_API_EU: JSON.stringify(bearer("variable")),
    FLOW_CREDENTIAL_X: JSON.stringify({ ...bearer("x"), name: "Team/X" }),
  };
  const bodies = (await listGivenCredentials(file, environment)).map(({ body }) => body);
  assert.deepEqual(bodies, [
    { ...bearer("variable"), name: "api-eu" },
    { ...bearer("x"), name: "Team/X" },
  ]);
});

test("without a file and variables the list is empty", async () => {
  assert.deepEqual(await listGivenCredentials(undefined, {}), []);
});

test("the error for invalid JSON names its place and does not contain its text", async (t) => {
  for (const [file, environment, place] of [
    [undefined, { FLOW_CREDENTIAL_A: `{${CANARY}` }, /FLOW_CREDENTIAL_A is not JSON/],
    [undefined, { FLOW_CREDENTIAL_A: `"${CANARY}"` }, /FLOW_CREDENTIAL_A: a credential is a JSON object/],
    [await fileWith(t, { pg: CANARY }), {}, /credentials\.json: pg: a credential is a JSON object/],
    [await fileWith(t, `{${CANARY}`), {}, /credentials\.json is not JSON/],
    ["/nowhere/credentials.json", {}, /Cannot read the credentials file \/nowhere/],
  ] as const) {
    await assert.rejects(
      listGivenCredentials(file, environment),
      (error: Error) => place.test(error.message) && !error.message.includes(CANARY),
    );
  }
});
