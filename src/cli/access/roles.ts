import { loadConfig } from "../../platform/config/config.ts";
import type { RoleItem } from "../../schema/api/roles.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { changeRole, createRole, deleteRole, listPermissions, listRoles, readRole } from "../server/access-api.ts";
import { serverTarget } from "../server/target.ts";
import { tell, tellJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";
import { allowOnPaths, denyPaths, disallow, paths, type RolesLine } from "./role-playbooks.ts";

/** `flow roles …`: what roles give. */
export async function manageRoles(input: CliInput): Promise<number> {
  const [word = "list", role = "", ...rest] = input.arguments;
  const action = ACTIONS.get(word);
  if (action === undefined) throw new FlowError("USAGE", `There is no 'flow roles ${word}'`);
  checkWords(
    word,
    action,
    [role, ...rest].filter((given) => given !== ""),
    input,
  );
  const target = await serverTarget(input, loadConfig(input.io.environment));
  return await action.run({ asking: { target, signal: input.io.signal }, role, rest, input });
}

interface RolesAction {
  /** What stands behind it, for the error when it does not. */
  words: readonly string[];
  /** The last word may be given more than once. */
  many?: true;
  options?: readonly string[];
  run(line: RolesLine): Promise<number>;
}

const ACTIONS: ReadonlyMap<string, RolesAction> = new Map<string, RolesAction>([
  ["list", { words: [], run: list }],
  ["show", { words: ["role"], run: show }],
  ["permissions", { words: [], run: permissions }],
  ["create", { words: ["role"], options: ["description"], run: create }],
  ["delete", { words: ["role"], run: remove }],
  ["activate", { words: ["role"], run: (line) => setActive(line, true) }],
  ["deactivate", { words: ["role"], run: (line) => setActive(line, false) }],
  ["give", { words: ["role", "permission"], many: true, run: (line) => changePermissions(line, "give") }],
  ["take", { words: ["role", "permission"], many: true, run: (line) => changePermissions(line, "take") }],
  [
    "allow",
    { words: ["role", "pattern"], many: true, options: ["execute", "view", "modify", "except"], run: allowOnPaths },
  ],
  ["deny", { words: ["role", "pattern"], many: true, run: denyPaths }],
  ["disallow", { words: ["role", "id of the permission"], many: true, run: disallow }],
]);

const OWN_OPTIONS = ["description", "execute", "view", "modify", "except"];

function checkWords(word: string, action: RolesAction, given: readonly string[], { options }: CliInput): void {
  const { words, many, options: own = [] } = action;
  const missing = words[given.length];
  if (missing !== undefined) throw new FlowError("USAGE", `'flow roles ${word}' needs the ${missing}`);
  const extra = given[words.length];
  if (extra !== undefined && many !== true) throw new FlowError("USAGE", `'flow roles ${word}' takes no '${extra}'`);
  const foreign = OWN_OPTIONS.find((name) => options[name] !== undefined && !own.includes(name));
  if (foreign === undefined) return;
  const whose = foreign === "description" ? "create" : "allow";
  throw new FlowError("USAGE", `--${foreign} goes with 'flow roles ${whose}'`);
}

async function list({ asking, input }: RolesLine): Promise<number> {
  const { options, io } = input;
  const roles = await listRoles(asking);
  if (options["json"] === true) return tellJson(input, { roles });
  writeTable(
    io.stdout,
    ["NAME", "STATUS", "PLAYBOOKS", "PERMISSIONS", "DESCRIPTION"],
    roles.map((role) => [
      role.name,
      role.is_active ? "active" : "inactive",
      plural(role.playbooks.length, "rule"),
      role.permissions.join(","),
      role.description ?? "",
    ]),
  );
  io.stderr.write(`${plural(roles.length, "role")} at ${asking.target.url}\n`);
  return EXIT.ok;
}

async function show({ asking, role, input }: RolesLine): Promise<number> {
  const found = await readRole(asking, role);
  if (input.options["json"] === true) return tellJson(input, found);
  const { io } = input;
  const status = found.is_active ? "active" : "inactive: gives nothing";
  const rows = [
    ["role", found.name],
    ["description", found.description ?? ""],
    ["status", status],
    ["permissions", found.permissions.join(", ") || "none beside playbooks"],
  ] as const;
  for (const [key, value] of rows) if (value !== "") io.stdout.write(`${`${key}:`.padEnd(13)}${cleanText(value)}\n`);
  if (found.playbooks.length === 0) return EXIT.ok;
  io.stdout.write("\n");
  paths(io.stdout, found.playbooks);
  return EXIT.ok;
}

async function permissions({ asking, input }: RolesLine): Promise<number> {
  const found = await listPermissions(asking);
  if (input.options["json"] === true) return tellJson(input, { permissions: found });
  const rows = found.map(({ name, description }) => [name, description]);
  writeTable(input.io.stdout, ["PERMISSION", "GIVES"], rows);
  return EXIT.ok;
}

async function create({ asking, role, input }: RolesLine): Promise<number> {
  const description = textOption(input.options, "description");
  const made = await createRole(asking, { name: role, ...(description !== undefined && { description }) });
  return tell(input, made, `The role '${made.name}' gives nothing yet: 'flow roles allow' and 'give' say what it does`);
}

async function remove({ asking, role, input }: RolesLine): Promise<number> {
  return tell(input, await deleteRole(asking, role), `The role '${role}' is gone, also from its users`);
}

async function setActive({ asking, role, input }: RolesLine, is_active: boolean): Promise<number> {
  const said = is_active ? "gives what it says again" : "gives nothing until it is activated again";
  return tell(input, await changeRole(asking, role, { is_active }), `The role '${role}' ${said}`);
}

/** The server knows the whole list alone: it is read, changed and written. */
async function changePermissions({ asking, role, rest, input }: RolesLine, what: "give" | "take"): Promise<number> {
  const before = await readRole(asking, role);
  const others = before.permissions.filter((name) => !rest.includes(name));
  const missing = what === "take" ? rest.find((name) => !before.permissions.includes(name)) : undefined;
  if (missing !== undefined) throw new FlowError("NOT_FOUND", `The role '${role}' does not give '${missing}'`);
  const after = await changeRole(asking, role, { permissions: what === "give" ? [...others, ...rest] : others });
  return tell(input, after, `The role '${role}' gives ${given(after)}`);
}

function given({ permissions: names }: RoleItem): string {
  return names.length === 0 ? "no permission beside playbooks" : names.join(", ");
}
