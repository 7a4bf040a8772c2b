import type { KeychainItem, KeychainScope } from "../../schema/api/keychain.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { KEYCHAIN_ROUTES } from "../../schema/routes/keychain.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { writeTable } from "../terminal/table.ts";
import { formatCount, jsonText, plural } from "../terminal/text.ts";
import { resolveExecutionId } from "../watch/execution-id.ts";

/** `flow keychain …`: what a server has cached for the keychain of a playbook. */
export const KEYCHAIN_ACTIONS = { list, delete: remove } satisfies Record<string, CliAction>;

/** `flow keychain list`: what a server has cached for a playbook, without the data. */
async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [playbook = ""] = input.arguments;
  const server = await openServer(input);
  const catalogId = await catalogIdOf(server, playbook, input);
  const params = { catalog_id: catalogId };
  const entries = await server.all(KEYCHAIN_ROUTES.list, { params }, (page) => page.entries);
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ catalog_id: Number(catalogId), entries })}\n`);
    return EXIT.ok;
  }
  const now = Date.now();
  writeTable(
    io.stdout,
    HEADINGS,
    entries.map((entry) => rowOf(entry, now)),
  );
  const count = entries.length === 1 ? "1 entry" : `${formatCount(entries.length)} entries`;
  io.stderr.write(`${count} of catalog entry ${catalogId} at ${server.target.url}\n`);
  return EXIT.ok;
}

const HEADINGS = ["NAME", "SCOPE", "EXECUTION", "TYPE", "EXPIRES", "RENEWED", "READ"];

function rowOf(entry: KeychainItem, now: number): string[] {
  const { keychain_name, scope_type, cache_key, credential_type, expires_at, auto_renew, access_count } = entry;
  const owner = scope_type === "global" ? "" : (cache_key.split(":").at(-1) ?? "");
  const reads = plural(access_count, "time");
  const renewed = auto_renew ? "yes" : "no";
  return [keychain_name, scope_type, owner, credential_type, expiryWords(Date.parse(expires_at), now), renewed, reads];
}

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

/** `in 3 hours`, `2 days ago`, `now`: in the largest unit that is reached. Both are milliseconds since 1970. */
export function expiryWords(at: number, now: number): string {
  const away = Math.abs(at - now);
  const [unit, ms] = UNITS.find(([, size]) => away >= size) ?? [];
  if (unit === undefined) return "now";
  const words = plural(Math.floor(away / ms), unit);
  return at > now ? `in ${words}` : `${words} ago`;
}

/** Whose entry is deleted. */
function ownerOf({ options }: CliInput): { scope: KeychainScope; execution: string | undefined } {
  const execution = textOption(options, "execution");
  // The parser has checked that it is one.
  const scope = (textOption(options, "scope")?.toLowerCase() ?? "global") as KeychainScope;
  if (scope === "global" && execution !== undefined) {
    throw new FlowError("USAGE", "--execution goes with --scope local or shared: a global entry is of no execution");
  }
  if (scope !== "global" && execution === undefined) {
    const whose = scope === "local" ? "the execution whose entry it is" : "any execution of the tree whose entry it is";
    throw new FlowError("USAGE", `--scope ${scope} needs --execution ID: ${whose}`);
  }
  return { scope, execution };
}

/** `flow keychain delete`: deletes one entry; it need not exist. */
async function remove(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [playbook = "", name = ""] = input.arguments;
  const { scope, execution } = ownerOf(input);
  const server = await openServer(input);
  const execution_id = execution && (await resolveExecutionId(execution, server.target, io.signal));
  const answer = await server.call(KEYCHAIN_ROUTES.delete, {
    params: { catalog_id: await catalogIdOf(server, playbook, input), keychain_name: name },
    query: { scope_type: scope, execution_id },
  });
  io.stdout.write(options["json"] === true ? `${jsonText(answer)}\n` : `${answer.message}\n`);
  return EXIT.ok;
}

/** The word itself if it is a catalog id, else the id of the requested or newest version of the path. */
async function catalogIdOf({ call }: CommandServer, playbook: string, { options }: CliInput): Promise<string> {
  const version = textOption(options, "version");
  if (/^[1-9]\d{0,15}$/.test(playbook)) {
    if (version === undefined) return playbook;
    throw new FlowError("USAGE", "--version goes with a path: a catalog id is of one version already");
  }
  return (await call(CATALOG_ROUTES.resource, { params: { path: playbook }, query: { version } })).catalog_id;
}
