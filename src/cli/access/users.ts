import { loadConfig } from "../../platform/config/config.ts";
import type { UserItem } from "../../schema/api/users.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import {
  type Asking,
  addUser,
  deleteUser,
  endSessions,
  grantRole,
  listUsers,
  readUser,
  revokeRole,
  setUserActive,
} from "../server/access-api.ts";
import { serverTarget } from "../server/target.ts";
import { tell, tellJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";

/** What a `flow users` line asks for, its words checked. */
interface UsersLine {
  asking: Asking;
  user: string;
  roles: readonly string[];
  input: CliInput;
}

/** `flow users …`: people who may log in, and their roles. */
export async function manageUsers(input: CliInput): Promise<number> {
  const [action = "list", user, ...roles] = input.arguments;
  checkWords(action, user, roles, input);
  const target = await serverTarget(input, loadConfig(input.io.environment));
  const line = { asking: { target, signal: input.io.signal }, user: user ?? "", roles, input };
  // The command's definition lets no other word through.
  return await (ACTIONS[action] ?? list)(line);
}

const ACTIONS: Readonly<Record<string, (line: UsersLine) => Promise<number>>> = {
  list,
  show: async ({ asking, user, input }) => show(input, await readUser(asking, user)),
  add,
  async activate({ asking, user, input }) {
    const changed = await setUserActive(asking, user, true);
    return tell(input, changed, `${changed.email} may log in`);
  },
  async deactivate({ asking, user, input }) {
    const changed = await setUserActive(asking, user, false);
    return tell(input, changed, `${changed.email} is logged out, and may not log in`);
  },
  grant: (line) => changeRoles(line, grantRole),
  revoke: (line) => changeRoles(line, revokeRole),
  async logout({ asking, user, input }) {
    const ended = await endSessions(asking, user);
    return tell(input, ended, `${plural(ended.revoked, "session")} of ${user} ended`);
  },
  delete: async ({ asking, user, input }) =>
    tell(input, await deleteUser(asking, user), `${user} is gone, with sessions and roles`),
};

const WITH_ROLES = ["add", "grant", "revoke"];
const OPTIONS_OF: Readonly<Record<string, string>> = { search: "list", role: "list", status: "list", name: "add" };

function checkWords(action: string, user: string | undefined, roles: readonly string[], { options }: CliInput): void {
  if (action === "list" && user !== undefined) {
    throw new FlowError("USAGE", `'flow users list' takes no user; did you mean --search ${user}?`);
  }
  if (action !== "list" && user === undefined) {
    throw new FlowError("USAGE", `'flow users ${action}' needs the user: an address, or an id`);
  }
  if (roles.length > 0 && !WITH_ROLES.includes(action)) {
    throw new FlowError("USAGE", `'flow users ${action}' takes no '${roles[0]}'`);
  }
  if (roles.length === 0 && (action === "grant" || action === "revoke")) {
    throw new FlowError("USAGE", `'flow users ${action}' needs the role: 'flow roles' shows which there are`);
  }
  const foreign = Object.keys(OPTIONS_OF).find((name) => options[name] !== undefined && OPTIONS_OF[name] !== action);
  if (foreign !== undefined) throw new FlowError("USAGE", `--${foreign} goes with 'flow users ${OPTIONS_OF[foreign]}'`);
}

async function list({ asking, input }: UsersLine): Promise<number> {
  const { options, io } = input;
  const search = textOption(options, "search");
  const role = textOption(options, "role");
  const status = textOption(options, "status");
  const users = await listUsers(asking, {
    ...(search !== undefined && { q: search }),
    ...(role !== undefined && { role }),
    ...(status !== undefined && { is_active: String(status === "active") }),
  });
  if (options["json"] === true) return tellJson(input, { users });
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
  io.stderr.write(`${plural(users.length, "user")} at ${asking.target.url}\n`);
  return EXIT.ok;
}

async function add({ asking, user, roles, input }: UsersLine): Promise<number> {
  const name = textOption(input.options, "name");
  const added = await addUser(asking, {
    email: user,
    ...(name !== undefined && { display_name: name }),
    roles: [...roles],
  });
  return tell(input, added, `${added.email} is user ${added.user_id} and has ${rolesText(added)}`);
}

async function changeRoles({ asking, user, roles, input }: UsersLine, change: typeof grantRole): Promise<number> {
  let changed: UserItem | undefined;
  for (const role of roles) changed = await change(asking, user, role);
  // There is one role at least.
  const now = changed ?? (await readUser(asking, user));
  return tell(input, now, `${now.email} has ${rolesText(now)} now`);
}

function rolesText(user: UserItem): string {
  const roles = rolesOf(user);
  if (roles.length === 0) return "no role";
  return `${roles.length === 1 ? "the role" : "the roles"} ${roles.join(", ")}`;
}

function rolesOf({ roles }: UserItem): string[] {
  return roles.filter(({ is_active }) => is_active).map(({ role }) => role);
}

function show(input: CliInput, user: UserItem): number {
  const { options, io } = input;
  if (options["json"] === true) return tellJson(input, user);
  const rows = [
    ["user", String(user.user_id)],
    ["email", user.email],
    ["name", user.display_name],
    ["status", user.is_active ? "active" : "inactive: may not log in"],
    ["vouched for by", user.issuer ?? "nobody yet: has not logged in"],
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
