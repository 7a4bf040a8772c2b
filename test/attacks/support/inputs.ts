import { ROUTES } from "../../../src/schema/routes/all.ts";
import type { RouteContract } from "../../../src/schema/routes/contract.ts";

/* The inputs of every route that users may call, and every form in which one of them can be written. */

/** What the values of an input name; `undefined`: nothing that belongs to a path. A new name must be added here. */
export const NAMES: Readonly<Record<string, keyof Named | undefined>> = {
  ...named("path", "path resource_path resource prefix path_contains"),
  ...named("catalogId", "catalog_id"),
  ...named("executionId", "execution_id parent_execution_id id_prefix started_by_id execution_ids"),
  ...named("commandId", "command_id"),
  ...named("triggerId", "trigger_id"),
  ...named("approvalId", "approval_id"),
  ...named("ref", "ref"),
  ...named("credential", "identifier"),
  ...named("content", "content"),
  ...named(
    undefined,
    `action actor after allow_pattern any_issuer attempt before can_execute can_modify can_view cascade counted cursor data deny_pattern
    description display_name email error error_code event_type every failed heads hidden id if_changed include_data input is_active is_live issuer iteration key limit
    meta name order parent_iter parent_step permission_id permissions playbook_path playbooks q reason resource_kind
    resource_type at result return_step role roles roots_only schema sealed session_id since stale_seconds started_by status step steps_after strict tag
    tags target token_sha256 type until user user_id values version wait_ms worker workload labels paths
    bulk_id dry_run filter options from only reuse_children reuse_iterations step_input variables
    retain mine decision comment kind enabled n bucket group sort
    to max_active only_missing calls refused token frame method tool arguments`,
  ),
};

/** One thing of each kind below a path. */
export interface Named {
  path: string;
  catalogId: string;
  executionId: string;
  commandId: string;
  triggerId: string;
  approvalId: string;
  ref: string;
  credential: string;
  content: string;
}

function named(kind: keyof Named | undefined, names: string): Record<string, keyof Named | undefined> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, kind]),
  );
}

/** A text that only what belongs to a path holds. */
export function canaryOf(path: string): string {
  return `canary of ${path.replaceAll("/", " ")}`;
}

function encoded(text: string): string {
  return [...text].map((char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`).join("");
}

/** Ways to write one value, as text that is put into an address as it stands. */
export function textsOf(value: string, decoy: string): Record<string, string> {
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
export function valuesOf(value: string, decoy: string): Record<string, string> {
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

/** A call of a route. */
export interface Call {
  /** The route, the input and its form. */
  what: string;
  /** The input stands as clients write it. */
  isPlain: boolean;
  method: string;
  address: string;
  body?: string;
}

/** True for the first form of {@link textsOf}, and for that of {@link valuesOf}. */
export function isPlain(form: string): boolean {
  return form === "as it is" || form === "a text";
}

/** The names of the inputs of a route, by the place where they are. */
export function inputsOf({ path, query, body }: RouteContract): {
  parameters: string[];
  query: string[];
  body: string[];
} {
  const entries = body !== undefined && "entries" in body ? Object.keys(body.entries as object) : [];
  const parameters = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  return { parameters, query: Object.keys(query?.entries ?? {}), body: entries };
}

/** Every call of a route in which one input names a thing in one form; the other inputs name what is `own`. */
export function callsOf(route: RouteContract, of: Named, own: Named): Call[] {
  const inputs = inputsOf(route);
  const addressOf = (replaced?: string, form?: string) =>
    route.path.replace(/:(\w+)(\{[^}]*\})?/g, (_, name: string) => {
      const kind = NAMES[name];
      if (name === replaced) return form ?? "";
      return kind === undefined ? "check" : encodeURIComponent(own[kind]).replaceAll("%2F", "/");
    });
  const method = route.method.toUpperCase();
  const call = (name: string, form: string, address: string, body?: string): Call => ({
    what: `${route.method} ${route.path}: ${name}, ${form}`,
    isPlain: isPlain(form),
    method,
    address,
    ...(method !== "GET" && { body: body ?? "{}" }),
  });
  const naming = (names: readonly string[]) =>
    names.flatMap((name) => (NAMES[name] === undefined ? [] : [[name, NAMES[name]] as const]));
  return [
    ...naming(inputs.parameters).flatMap(([name, kind]) =>
      Object.entries(textsOf(of[kind], own[kind])).map(([form, text]) => call(name, form, addressOf(name, text))),
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
      return [...forms, ...twice, ...beside].map(([form, query]) => call(name, form, `${addressOf()}?${query}`));
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
      return [...forms, ...twice, ...beside].map(([form, body]) => call(name, form, addressOf(), body));
    }),
  ];
}

/** A call that names two things may take away the caller's own one; a start and a registration only add to it. */
export function mayLose({ method, user }: RouteContract): boolean {
  return method !== "get" && !(typeof user === "object" && "of" in user && user.of === "asked");
}

/** The routes that users may call, over a server or a gateway. */
export const FOR_USERS = ROUTES.filter(({ user }) => user !== undefined);
