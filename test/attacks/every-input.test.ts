import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ROUTES } from "../../src/schema/routes/all.ts";
import type { RouteContract } from "../../src/schema/routes/contract.ts";
import { storedResults } from "../support/database/stored-results.ts";
import { openApi, TOKENS } from "../support/service/api.ts";
import { ONE_STEP } from "../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/*
 * Every input that names an execution, a catalog entry, a result, a command, a credential or a path, in every form, by every
 * kind of user. The inputs come from the route contracts, so that a new route is covered by itself. No answer may hold anything
 * of a path that its caller may not view, and nothing of such a path may change.
 */

const api = await openApi();
const { work, put, refOf } = storedResults(api);

/** What the values of an input name; `undefined`: nothing that belongs to a path. A new name must be added here. */
const NAMES: Readonly<Record<string, keyof Named | undefined>> = {
  ...named("path", "path resource_path prefix path_contains"),
  ...named("catalogId", "catalog_id"),
  ...named("executionId", "execution_id parent_execution_id id_prefix"),
  ...named("commandId", "command_id"),
  ...named("ref", "ref"),
  ...named("credential", "identifier"),
  ...named("content", "content"),
  ...named(
    undefined,
    `action actor after allow_pattern attempt before can_execute can_modify can_view cascade counted cursor data deny_pattern
    description display_name email event_type every failed heads hidden if_changed include_data is_active is_live issuer iteration limit
    meta name order parent_iter parent_step permission_id permissions playbook_path playbooks q reason resource resource_kind
    resource_type result return_step role roles schema sealed session_id since stale_seconds status step steps_after strict tag
    tags target token_sha256 type until user user_id values version wait_ms worker workload labels paths`,
  ),
};

/** One thing of each kind below a path. */
interface Named {
  path: string;
  catalogId: string;
  executionId: string;
  commandId: string;
  ref: string;
  credential: string;
  content: string;
}

const OURS = "mine/a";
const PATHS = [OURS, "other/b", "api_integration/idp/c"] as const;
const things = new Map<string, Named>();
const users: { who: string; user: TestUser; views: readonly string[]; changes: readonly string[] }[] = [];

before(async () => {
  for (const path of PATHS) {
    await work.register(path, ONE_STEP, `, description: "${canaryOf(path)}"`);
    const id = await work.execute(path, { workload: { said: canaryOf(path) } });
    const command = (await work.claim("w", 100)).find(({ execution_id }) => execution_id === id);
    assert.ok(command !== undefined);
    assert.equal((await put(command, JSON.stringify(canaryOf(path)))).status, 200);
    const entry = await work.get(`/api/catalog/resource/${path}`);
    const credential = `of-${path.replaceAll("/", "-")}`;
    const body = { name: credential, type: "custom", data: { key: "k" }, description: canaryOf(path) };
    assert.ok((await work.post("/api/credentials", body)).status < 300);
    things.set(path, {
      path,
      catalogId: String(entry.body["catalog_id"]),
      executionId: command.execution_id,
      commandId: command.command_id,
      ref: refOf(command),
      credential,
      content: `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: planted, path: ${path} }\nworkflow:\n${ONE_STEP}`,
    });
  }
  const all = ["execute", "view", "modify"] as const;
  for (const [who, rows, views, changes] of [
    ["no role", [], [], []],
    ["a member of a team", [{ allow: "mine/**", can: all }], [OURS], [OURS]],
    ["a viewer of a team", [{ allow: "mine/**", can: ["view"] }], [OURS], []],
    ["one who is denied the others", [{ allow: "**", deny: "other/**\napi_integration/**", can: all }], [OURS], [OURS]],
    ["one whose rows reach everything", [{ allow: "**", can: all }], PATHS, [OURS, "other/b"]],
  ] as const) {
    const user = await addUser(api.database);
    await allow(api.database, user, rows);
    users.push({ who, user, views, changes });
  }
});

function named(kind: keyof Named | undefined, names: string): Record<string, keyof Named | undefined> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, kind]),
  );
}

/** A text that only what belongs to a path holds. */
function canaryOf(path: string): string {
  return `canary of ${path.replaceAll("/", " ")}`;
}

function encoded(text: string): string {
  return [...text].map((char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`).join("");
}

/** Ways to write one value, as text that is put into an address as it stands. */
function textsOf(value: string, decoy: string): Record<string, string> {
  const plain = encodeURIComponent(value);
  const json = (what: unknown) => encodeURIComponent(JSON.stringify(what));
  const escaped = [...value].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  return {
    "as it is": value.replaceAll(" ", "%20").replaceAll("\n", "%0A"),
    encoded: plain,
    "every character encoded": encoded(value),
    "encoded twice": encodeURIComponent(plain),
    "a slash before": `%2F${plain}`,
    "two slashes before": `//${value.split("\n")[0]}`,
    "a slash behind": `${plain}/`,
    "doubled slashes": plain.replaceAll("%2F", "%2F%2F"),
    backslashes: plain.replaceAll("%2F", "%5C"),
    "a dot": `./${plain}`,
    dots: `${encodeURIComponent(decoy)}/../${plain}`,
    "dots that are encoded": `x%2F..%2F${plain}`,
    "upper case": encodeURIComponent(value.toUpperCase()),
    "a space before": `%20${plain}`,
    "a space behind": `${plain}%20`,
    "a line break behind": `${plain}%0A`,
    "a zero byte behind": `${plain}%00`,
    "a plus before": `%2B${plain}`,
    "zeros before": `00${plain}`,
    "a fraction": `${plain}.0`,
    "a parameter behind": `${plain};x=1`,
    "a text in JSON": json(value),
    "a list in JSON": json([value]),
    "a reference in JSON": json({ kind: "result_ref", ref: value }),
    "escapes in JSON": encodeURIComponent(`"${escaped}"`),
  };
}

/** Ways to write a value in a body, as JSON. */
function valuesOf(value: string, decoy: string): Record<string, string> {
  const json = JSON.stringify(value);
  return {
    "a text": json,
    "a text with a slash before": JSON.stringify(`/${value}`),
    "a text with two slashes before": JSON.stringify(`//${value}`),
    "a text with a slash behind": JSON.stringify(`${value}/`),
    "a text with spaces": JSON.stringify(` ${value} `),
    "a text with dots": JSON.stringify(`${decoy}/../${value}`),
    "upper case": JSON.stringify(value.toUpperCase()),
    "a number": /^\d+$/.test(value) ? value : json,
    "a number with a fraction": /^\d+$/.test(value) ? `${value}.0` : json,
    "zeros before": JSON.stringify(`00${value}`),
    "a list": `[${json}]`,
    "a map": `{"path":${json}}`,
    "JSON in a text": JSON.stringify(json),
    escapes: `"${[...value].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`,
  };
}

interface Call {
  what: string;
  method: string;
  address: string;
  body?: string;
}

function inputsOf({ path, query, body }: RouteContract): { parameters: string[]; query: string[]; body: string[] } {
  const entries = body !== undefined && "entries" in body ? Object.keys(body.entries as object) : [];
  const parameters = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  return { parameters, query: Object.keys(query?.entries ?? {}), body: entries };
}

/** Every call of a route in which one input names a thing in one form; the other inputs name what is `own`. */
function callsOf(route: RouteContract, of: Named, own: Named): Call[] {
  const inputs = inputsOf(route);
  const addressOf = (replaced?: string, form?: string) =>
    route.path.replace(/:(\w+)(\{[^}]*\})?/g, (_, name: string) => {
      const kind = NAMES[name];
      if (name === replaced) return form ?? "";
      return kind === undefined ? "check" : encodeURIComponent(own[kind]).replaceAll("%2F", "/");
    });
  const method = route.method.toUpperCase();
  const call = (what: string, address: string, body?: string): Call => ({
    what: `${route.method} ${route.path}: ${what}`,
    method,
    address,
    ...(method !== "GET" && { body: body ?? "{}" }),
  });
  const naming = (names: readonly string[]) =>
    names.flatMap((name) => (NAMES[name] === undefined ? [] : [[name, NAMES[name]] as const]));
  return [
    ...naming(inputs.parameters).flatMap(([name, kind]) =>
      Object.entries(textsOf(of[kind], own[kind])).map(([form, text]) =>
        call(`${name}, ${form}`, addressOf(name, text)),
      ),
    ),
    ...naming(inputs.query).flatMap(([name, kind]) => {
      const [its, other] = [`${name}=${encodeURIComponent(of[kind])}`, `${name}=${encodeURIComponent(own[kind])}`];
      const forms = Object.entries(textsOf(of[kind], own[kind])).map(
        ([form, text]) => [form, `${name}=${text}`] as const,
      );
      const twice = [
        ["after another", `${other}&${its}`],
        ["before another", `${its}&${other}`],
        ["a name that is encoded", `${encoded(name)}=${encodeURIComponent(of[kind])}`],
        ["a list", `${name}[]=${encodeURIComponent(of[kind])}`],
      ] as const;
      const others = naming(inputs.query).filter(([other]) => other !== name);
      const beside = others.map(
        ([another, what]) =>
          [`beside an own ${another}`, `${its}&${another}=${encodeURIComponent(own[what])}`] as const,
      );
      return [...forms, ...twice, ...beside].map(([form, query]) =>
        call(`${name}, ${form}`, `${addressOf()}?${query}`),
      );
    }),
    ...naming(inputs.body).flatMap(([name, kind]) => {
      const key = JSON.stringify(name);
      const [its, other] = [JSON.stringify(of[kind]), JSON.stringify(own[kind])];
      const forms = Object.entries(valuesOf(of[kind], own[kind])).map(
        ([form, json]) => [form, `{${key}:${json}}`] as const,
      );
      const twice = [
        ["after another", `{${key}:${other},${key}:${its}}`],
        ["before another", `{${key}:${its},${key}:${other}}`],
        ["in a prototype", `{"__proto__":{${key}:${its}},${key}:${other}}`],
      ] as const;
      const others = naming(inputs.body).filter(([other]) => other !== name);
      const beside = others.map(([another, what]) => {
        const both = JSON.stringify({ [name]: of[kind], [another]: own[what] });
        return [`beside an own ${another}`, both] as const;
      });
      return [...forms, ...twice, ...beside].map(([form, body]) => call(`${name}, ${form}`, addressOf(), body));
    }),
  ];
}

async function send(user: TestUser, { method, address, body }: Call): Promise<{ status: number; text: string }> {
  const headers = {
    authorization: `Bearer ${TOKENS.operator}`,
    "x-flow-session": user.tokenSha256,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const response = await api.guarded.request(address, { method, headers, ...(body !== undefined && { body }) });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
    return { status: response.status, text: await response.text() };
  // A stream of an open execution does not end: its first part says whether it was given.
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return { status: response.status, text: Buffer.from(first?.value ?? []).toString() };
}

/** What must not change: the entries, executions and results of a path, and its credential. */
async function stateOf(path: string): Promise<string> {
  const { credential } = things.get(path) as Named;
  const [state] = await api.database.sql`
    select (select json_agg(row_to_json(c) order by c.catalog_id) from flow.catalog c where c.path = ${path}) as entries,
      (select json_agg(json_build_array(e.execution_id, e.status, e.last_event_id) order by e.execution_id)
        from flow.execution e where e.path = ${path}) as executions,
      (select json_agg(json_build_array(r.ref, r.state) order by r.ref) from flow.result r
        join flow.execution e using (execution_id) where e.path = ${path}) as results,
      (select json_agg(row_to_json(k)) from flow.credential k where k.name = ${credential}) as credentials`;
  return JSON.stringify(state);
}

/** A call that names two things may take away the caller's own one; a start and a registration only add to it. */
function mayLose({ method, user }: RouteContract): boolean {
  return method !== "get" && !(typeof user === "object" && "of" in user && user.of === "asked");
}

const FOR_USERS = ROUTES.filter(({ user }) => user !== undefined);

test("every input of a route that users may call is known to name something or nothing", () => {
  const names = FOR_USERS.flatMap((route) => Object.values(inputsOf(route)).flat());
  assert.deepEqual(
    names.filter((name) => !Object.hasOwn(NAMES, name)),
    [],
    "add it to NAMES, with what its values name",
  );
});

for (const who of [
  "no role",
  "a member of a team",
  "a viewer of a team",
  "one who is denied the others",
  "one whose rows reach everything",
]) {
  test(`${who}: no form of any input gives or changes what belongs to a path beyond their rows`, {
    timeout: 120_000,
  }, async () => {
    const { user, views, changes } = users.find((one) => one.who === who) ?? assert.fail(who);
    const kept = PATHS.filter((path) => !changes.includes(path));
    const before = await Promise.all(kept.map(stateOf));
    const hidden = PATHS.filter((path) => !views.includes(path)).map(canaryOf);
    const own = things.get(OURS) as Named;
    const given = new Set<string>();
    for (const path of PATHS) {
      const about = things.get(path) as Named;
      for (const route of FOR_USERS) {
        // What a member may do to their own is not tried: it would be gone for the tests behind.
        if (route.method !== "get" && changes.includes(path)) continue;
        for (const call of callsOf(route, about, mayLose(route) ? about : own)) {
          const { status, text } = await send(user, call);
          const what = `${who}: ${call.what}: ${call.method} ${call.address} ${call.body ?? ""}: ${status} ${text.slice(0, 500)}`;
          for (const canary of hidden) assert.ok(!text.includes(canary), what);
          assert.ok(status < 500, what);
          if (text.includes(canaryOf(path))) given.add(`${route.method} ${route.path}`);
        }
      }
    }
    assert.deepEqual(await Promise.all(kept.map(stateOf)), before, who);
    if (views.length > 0) assert.ok(given.size >= 5, `given by ${[...given].join(", ")}`);
    else assert.deepEqual([...given], []);
  });
}
