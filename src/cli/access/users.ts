import { loadConfig } from "../../platform/config/config.ts";
import type { UserItem } from "../../schema/api/users.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import {
  type ApiContext,
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
import { printAnswer, printJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";

/** What a `flow users` line asks for, its words checked. */
interface UsersCommand {
  api: ApiContext;
  user: string;
  roles: readonly string[];
  input: CliInput;
}

/** `flow users …`: people who may log in, and their roles. */
export async function manageUsers(input: CliInput): Promise<number> {
  const [action = "list", user, ...roles] = input.arguments;
  checkWords(action, user, roles, input);
  const target = await serverTarget(input, loadConfig(input.io.environment));
  const command = { api: { target, signal: input.io.signal }, user: user ?? "", roles, input };
  // The command's definition lets no other word through.
  return await (ACTIONS[action] ?? list)(command);
}

const ACTIONS: Readonly<Record<string, (command: UsersCommand) => Promise<number>>> = {
  list,
  show: async ({ api, user, input }) => show(input, await readUser(api, user)),
  add,
  async activate({ api, user, input }) {
    const changed = await setUserActive(api, user, true);
    return printAnswer(input, changed, `${changed.email} may log in`);
  },
  async deactivate({ api, user, input }) {
    const changed = await setUserActive(api, user, false);
    return printAnswer(input, changed, `${changed.email} is logged out, and may not log in`);
  },
  grant: (command) => changeRoles(command, grantRole),
  revoke: (command) => changeRoles(command, revokeRole),
  async logout({ api, user, input }) {
    const ended = await endSessions(api, user);
    return printAnswer(input, ended, `${plural(ended.revoked, "session")} of ${user} ended`);
  },
  delete: async ({ api, user, input }) =>
    printAnswer(input, await deleteUser(api, user), `${user} is gone, with sessions and roles`),
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
  const misplaced = Object.keys(OPTIONS_OF).find((name) => options[name] !== undefined && OPTIONS_OF[name] !== action);
  if (misplaced !== undefined)
    throw new FlowError("USAGE", `--${misplaced} goes with 'flow users ${OPTIONS_OF[misplaced]}'`);
}

async function list({ api, input }: UsersCommand): Promise<number> {
  const { options, io } = input;
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

async function add({ api, user, roles, input }: UsersCommand): Promise<number> {
  const name = textOption(input.options, "name");
  const added = await addUser(api, {
    email: user,
    ...(name !== undefined && { display_name: name }),
    roles: [...roles],
  });
  return printAnswer(input, added, `${added.email} is user ${added.user_id} and has ${rolesText(added)}`);
}

async function changeRoles({ api, user, roles, input }: UsersCommand, change: typeof grantRole): Promise<number> {
  let changed: UserItem | undefined;
  for (const role of roles) changed = await change(api, user, role);
  // There is one role at least.
  const now = changed ?? (await readUser(api, user));
  return printAnswer(input, now, `${now.email} has ${rolesText(now)} now`);
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
  if (options["json"] === true) return printJson(input, user);
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
