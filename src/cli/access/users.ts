import type { UserItem } from "../../schema/api/users.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import {
  addUser,
  deleteUser,
  endSessions,
  grantRole,
  listUsers,
  openApi,
  readUser,
  revokeRole,
  setUserActive,
} from "../server/access-api.ts";
import { printAnswer, printJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";

/** `flow users …`: users and their roles. */
export const USER_ACTIONS = {
  list,
  show,
  add,
  activate: (input) => setActive(input, true, "may log in"),
  deactivate: (input) => setActive(input, false, "is logged out and may not log in"),
  grant: (input) => changeRoles(input, grantRole),
  revoke: (input) => changeRoles(input, revokeRole),
  async logout(input) {
    const ended = await endSessions(await openApi(input), userOf(input));
    return printAnswer(input, ended, `${plural(ended.revoked, "session")} of ${userOf(input)} ended`);
  },
  async delete(input) {
    const answer = await deleteUser(await openApi(input), userOf(input));
    return printAnswer(input, answer, `${userOf(input)} was deleted, with sessions and roles`);
  },
} satisfies Record<string, CliAction>;

/** The parser has checked that the word is there. */
function userOf({ arguments: [user = ""] }: CliInput): string {
  return user;
}

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const api = await openApi(input);
  const search = textOption(options, "search");
  const role = textOption(options, "role");
  const status = textOption(options, "status");
  const users = await listUsers(api, {
    ...(search !== undefined && { q: search }),
    ...(role !== undefined && { role }),
    ...(status !== undefined && { is_active: String(status === "active") }),
  });
  if (options["json"] === true) return printJson(input, { users });
  writeTable(
    io.stdout,
    ["ID", "EMAIL", "NAME", "STATUS", "ROLES", "LAST LOGIN"],
    users.map((user) => [
      String(user.user_id),
      user.email,
      user.display_name,
      user.is_active ? "active" : "inactive",
      rolesOf(user).join(","),
      user.last_login_at ?? "",
    ]),
  );
  io.stderr.write(`${plural(users.length, "user")} at ${api.target.url}\n`);
  return EXIT.ok;
}

async function add(input: CliInput): Promise<number> {
  const [email = "", ...roles] = input.arguments;
  const name = textOption(input.options, "name");
  const added = await addUser(await openApi(input), {
    email,
    ...(name !== undefined && { display_name: name }),
    roles,
  });
  return printAnswer(input, added, `${added.email} is user ${added.user_id} and has ${rolesText(added)}`);
}

async function setActive(input: CliInput, isActive: boolean, result: string): Promise<number> {
  const changed = await setUserActive(await openApi(input), userOf(input), isActive);
  return printAnswer(input, changed, `${changed.email} ${result}`);
}

async function changeRoles(input: CliInput, change: typeof grantRole): Promise<number> {
  const [user = "", ...roles] = input.arguments;
  const api = await openApi(input);
  let changed: UserItem | undefined;
  for (const role of roles) changed = await change(api, user, role);
  // The parser has checked that there is at least one role.
  const now = changed ?? (await readUser(api, user));
  return printAnswer(input, now, `${now.email} now has ${rolesText(now)}`);
}

function rolesText(user: UserItem): string {
  const roles = rolesOf(user);
  if (roles.length === 0) return "no role";
  return `${roles.length === 1 ? "the role" : "the roles"} ${roles.join(", ")}`;
}

function rolesOf({ roles }: UserItem): string[] {
  return roles.filter(({ is_active }) => is_active).map(({ role }) => role);
}

async function show(input: CliInput): Promise<number> {
  const { options, io } = input;
  const user = await readUser(await openApi(input), userOf(input));
  if (options["json"] === true) return printJson(input, user);
  const rows = [
    ["user", String(user.user_id)],
    ["email", user.email],
    ["name", user.display_name],
    ["status", user.is_active ? "active" : "inactive: may not log in"],
    ["identity from", user.issuer ?? "none yet: has not logged in"],
    ["since", user.created_at],
    ["last login", user.last_login_at ?? "never"],
    ...user.roles.map(({ role, is_active, granted_by, granted_at }) => [
      "role",
      `${role}${is_active ? "" : " (inactive)"}, by ${granted_by ?? "the operator"}, ${granted_at}`,
    ]),
  ] as const;
  for (const [key = "", value = ""] of rows) io.stdout.write(`${`${key}:`.padEnd(16)}${cleanText(value)}\n`);
  return EXIT.ok;
}
