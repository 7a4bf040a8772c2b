import type { UserItem } from "../../schema/api/users.ts";
import { LOGIN_SESSION_ROUTES, USER_ROUTES } from "../../schema/routes/users.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
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
  grant: (input) => changeRoles(input, "grant"),
  revoke: (input) => changeRoles(input, "revoke"),
  async logout(input) {
    const ended = await (await openServer(input)).call(LOGIN_SESSION_ROUTES.revokeAll, named(input));
    return printAnswer(input, ended, `${plural(ended.revoked, "session")} of ${userOf(input)} ended`);
  },
  async delete(input) {
    const answer = await (await openServer(input)).call(USER_ROUTES.remove, named(input));
    return printAnswer(input, answer, `${userOf(input)} was deleted, with sessions and roles`);
  },
} satisfies Record<string, CliAction>;

/** The parser has checked that the word is there. */
function userOf({ arguments: [user = ""] }: CliInput): string {
  return user;
}

function named(input: CliInput) {
  return { params: { user: userOf(input) } };
}

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const server = await openServer(input);
  const status = textOption(options, "status");
  const query = {
    q: textOption(options, "search"),
    role: textOption(options, "role"),
    is_active: status === undefined ? undefined : status === "active" ? "true" : "false",
  } as const;
  const users = await server.all(USER_ROUTES.list, { query }, (page) => page.users);
  if (options["json"] === true) return printJson(input, { users });
  writeTable(
    io.stdout,
    ["ID", "EMAIL", "NAME", "STATUS", "ROLES", "IDENTITY FROM", "LAST LOGIN"],
    users.map((user) => [
      String(user.user_id),
      user.email,
      user.display_name,
      user.is_active ? "active" : "inactive",
      rolesOf(user).join(","),
      user.issuer ?? "any provider",
      user.last_login_at ?? "",
    ]),
  );
  io.stderr.write(`${plural(users.length, "user")} at ${server.target.url}\n`);
  return EXIT.ok;
}

async function add(input: CliInput): Promise<number> {
  const [email = "", ...roles] = input.arguments;
  const { options } = input;
  const body = {
    email,
    display_name: textOption(options, "name"),
    issuer: textOption(options, "issuer"),
    any_issuer: options["any-issuer"] === true ? true : undefined,
    roles,
  };
  const added = await (await openServer(input)).call(USER_ROUTES.add, { body });
  const whom = added.issuer ?? "the first identity provider that vouches for the address";
  const text = `${added.email} is user ${added.user_id} and has ${rolesText(added)}; logs in by ${whom}`;
  return printAnswer(input, added, text);
}

async function setActive(input: CliInput, isActive: boolean, result: string): Promise<number> {
  const changed = await (await openServer(input)).call(USER_ROUTES.change, {
    ...named(input),
    body: { is_active: isActive },
  });
  return printAnswer(input, changed, `${changed.email} ${result}`);
}

async function changeRoles(input: CliInput, change: "grant" | "revoke"): Promise<number> {
  const [user = "", ...roles] = input.arguments;
  const server = await openServer(input);
  let changed: UserItem | undefined;
  for (const role of roles) changed = await server.call(USER_ROUTES[change], { params: { user, role } });
  // The parser has checked that there is at least one role.
  const now = changed ?? (await server.call(USER_ROUTES.read, named(input)));
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
  const user = await (await openServer(input)).call(USER_ROUTES.read, named(input));
  if (options["json"] === true) return printJson(input, user);
  const rows = [
    ["user", String(user.user_id)],
    ["email", user.email],
    ["name", user.display_name],
    ["status", user.is_active ? "active" : "inactive: may not log in"],
    ["identity from", user.issuer ?? "the first provider that vouches for the address"],
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
