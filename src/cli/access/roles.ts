import { loadConfig } from "../../platform/config/config.ts";
import type { RoleItem } from "../../schema/api/roles.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { changeRole, createRole, deleteRole, listPermissions, listRoles, readRole } from "../server/access-api.ts";
import { serverTarget } from "../server/target.ts";
import { printAnswer, printJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";
import { allowOnPaths, denyPaths, disallow, type RolesCommand, writeRules } from "./role-playbooks.ts";

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
  return await action.run({ api: { target, signal: input.io.signal }, role, rest, input });
}

interface RolesAction {
  /** What stands behind it, for the error when it does not. */
  words: readonly string[];
  /** The last word may be given more than once. */
  many?: true;
  options?: readonly string[];
  run(command: RolesCommand): Promise<number>;
}

const ACTIONS: ReadonlyMap<string, RolesAction> = new Map<string, RolesAction>([
  ["list", { words: [], run: list }],
  ["show", { words: ["role"], run: show }],
  ["permissions", { words: [], run: permissions }],
  ["create", { words: ["role"], options: ["description"], run: create }],
  ["delete", { words: ["role"], run: remove }],
  ["activate", { words: ["role"], run: (command) => setActive(command, true) }],
  ["deactivate", { words: ["role"], run: (command) => setActive(command, false) }],
  ["give", { words: ["role", "permission"], many: true, run: (command) => changePermissions(command, "give") }],
  ["take", { words: ["role", "permission"], many: true, run: (command) => changePermissions(command, "take") }],
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
  const misplaced = OWN_OPTIONS.find((name) => options[name] !== undefined && !own.includes(name));
  if (misplaced === undefined) return;
  const whose = misplaced === "description" ? "create" : "allow";
  throw new FlowError("USAGE", `--${misplaced} goes with 'flow roles ${whose}'`);
}

async function list({ api, input }: RolesCommand): Promise<number> {
  const { options, io } = input;
  const roles = await listRoles(api);
  if (options["json"] === true) return printJson(input, { roles });
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
  io.stderr.write(`${plural(roles.length, "role")} at ${api.target.url}\n`);
  return EXIT.ok;
}

async function show({ api, role, input }: RolesCommand): Promise<number> {
  const found = await readRole(api, role);
  if (input.options["json"] === true) return printJson(input, found);
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
  writeRules(io.stdout, found.playbooks);
  return EXIT.ok;
}

async function permissions({ api, input }: RolesCommand): Promise<number> {
  const found = await listPermissions(api);
  if (input.options["json"] === true) return printJson(input, { permissions: found });
  const rows = found.map(({ name, description }) => [name, description]);
  writeTable(input.io.stdout, ["PERMISSION", "GIVES"], rows);
  return EXIT.ok;
}

async function create({ api, role, input }: RolesCommand): Promise<number> {
  const description = textOption(input.options, "description");
  const made = await createRole(api, { name: role, ...(description !== undefined && { description }) });
  return printAnswer(
    input,
    made,
    `The role '${made.name}' gives nothing yet: 'flow roles allow' and 'give' say what it does`,
  );
}

async function remove({ api, role, input }: RolesCommand): Promise<number> {
  return printAnswer(input, await deleteRole(api, role), `The role '${role}' is gone, also from its users`);
}

async function setActive({ api, role, input }: RolesCommand, is_active: boolean): Promise<number> {
  const change = is_active ? "gives what it says again" : "gives nothing until it is activated again";
  return printAnswer(input, await changeRole(api, role, { is_active }), `The role '${role}' ${change}`);
}

/** The server knows the whole list alone: it is read, changed and written. */
async function changePermissions({ api, role, rest, input }: RolesCommand, what: "give" | "take"): Promise<number> {
  const before = await readRole(api, role);
  const others = before.permissions.filter((name) => !rest.includes(name));
  const missing = what === "take" ? rest.find((name) => !before.permissions.includes(name)) : undefined;
  if (missing !== undefined) throw new FlowError("NOT_FOUND", `The role '${role}' does not give '${missing}'`);
  const after = await changeRole(api, role, { permissions: what === "give" ? [...others, ...rest] : others });
  return printAnswer(input, after, `The role '${role}' gives ${given(after)}`);
}

function given({ permissions: names }: RoleItem): string {
  return names.length === 0 ? "no permission beside playbooks" : names.join(", ");
}
