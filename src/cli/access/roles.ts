import type { RoleItem } from "../../schema/api/roles.ts";
import { ROLE_ROUTES } from "../../schema/routes/roles.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { printAnswer, printJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";
import { allowOnPaths, denyPaths, disallow, writeRules } from "./role-playbooks.ts";

/** `flow roles …`: roles and what they give. */
export const ROLE_ACTIONS = {
  list,
  show,
  permissions,
  create,
  delete: remove,
  activate: (input) => setActive(input, true),
  deactivate: (input) => setActive(input, false),
  give: (input) => changePermissions(input, "give"),
  take: (input) => changePermissions(input, "take"),
  allow: allowOnPaths,
  deny: denyPaths,
  disallow,
} satisfies Record<string, CliAction>;

/** The parser has checked that the word is there. */
function roleOf({ arguments: [role = ""] }: CliInput): string {
  return role;
}

function named(input: CliInput) {
  return { params: { role: roleOf(input) } };
}

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const server = await openServer(input);
  const roles = await server.all(ROLE_ROUTES.list, {}, (page) => page.roles);
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
  io.stderr.write(`${plural(roles.length, "role")} at ${server.target.url}\n`);
  return EXIT.ok;
}

async function show(input: CliInput): Promise<number> {
  const found = await (await openServer(input)).call(ROLE_ROUTES.read, named(input));
  if (input.options["json"] === true) return printJson(input, found);
  const { io } = input;
  const status = found.is_active ? "active" : "inactive: gives nothing";
  const rows = [
    ["role", found.name],
    ["description", found.description ?? ""],
    ["status", status],
    ["permissions", found.permissions.join(", ") || "no global ones"],
  ] as const;
  for (const [key, value] of rows) if (value !== "") io.stdout.write(`${`${key}:`.padEnd(13)}${cleanText(value)}\n`);
  if (found.playbooks.length === 0) return EXIT.ok;
  io.stdout.write("\n");
  writeRules(io.stdout, found.playbooks);
  return EXIT.ok;
}

async function permissions(input: CliInput): Promise<number> {
  const found = await (await openServer(input)).all(ROLE_ROUTES.permissions, {}, (page) => page.permissions);
  if (input.options["json"] === true) return printJson(input, { permissions: found });
  const rows = found.map(({ name, description }) => [name, description]);
  writeTable(input.io.stdout, ["PERMISSION", "GIVES"], rows);
  return EXIT.ok;
}

async function create(input: CliInput): Promise<number> {
  const body = { name: roleOf(input), description: textOption(input.options, "description") };
  const made = await (await openServer(input)).call(ROLE_ROUTES.add, { body });
  return printAnswer(input, made, `The role '${made.name}' has no permissions yet: use 'flow roles allow' and 'give'`);
}

async function remove(input: CliInput): Promise<number> {
  const answer = await (await openServer(input)).call(ROLE_ROUTES.remove, named(input));
  return printAnswer(input, answer, `The role '${roleOf(input)}' was deleted and taken from its users`);
}

async function setActive(input: CliInput, is_active: boolean): Promise<number> {
  const answer = await (await openServer(input)).call(ROLE_ROUTES.change, { ...named(input), body: { is_active } });
  const effect = is_active ? "is active again" : "grants nothing until it is activated again";
  return printAnswer(input, answer, `The role '${roleOf(input)}' ${effect}`);
}

/** The API sets the whole list: read it, change it, write it. */
async function changePermissions(input: CliInput, change: "give" | "take"): Promise<number> {
  const [role = "", ...names] = input.arguments;
  const server = await openServer(input);
  const before = await server.call(ROLE_ROUTES.read, { params: { role } });
  const others = before.permissions.filter((name) => !names.includes(name));
  const missing = change === "take" ? names.find((name) => !before.permissions.includes(name)) : undefined;
  if (missing !== undefined) throw new FlowError("NOT_FOUND", `The role '${role}' does not have '${missing}'`);
  const body = { permissions: change === "give" ? [...others, ...names] : others };
  const after = await server.call(ROLE_ROUTES.change, { params: { role }, body });
  return printAnswer(input, after, `The role '${role}' has ${given(after)}`);
}

function given({ permissions: names }: RoleItem): string {
  return names.length === 0 ? "no global permissions" : names.join(", ");
}
