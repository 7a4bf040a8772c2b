import { loadConfig } from "../../platform/config/config.ts";
import type { KeychainItem } from "../../schema/api/keychain.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { readResource } from "../server/catalog-api.ts";
import { deleteKeychainEntry, listKeychain } from "../server/keychain-api.ts";
import { paginate } from "../server/paginate.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { writeTable } from "../terminal/table.ts";
import { formatCount, jsonText, plural } from "../terminal/text.ts";
import { resolveExecutionId } from "../watch/execution-id.ts";

/** `flow keychain …`: what a server has cached for the keychain of a playbook. */
export const KEYCHAIN_ACTIONS = { list, delete: remove } satisfies Record<string, CliAction>;

/** `flow keychain list`: what a server has cached for a playbook, without the data. */
async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [playbook = ""] = input.arguments;
  const target = await serverTarget(input, loadConfig(io.environment));
  const catalogId = await catalogIdOf(target, playbook, input);
  const entries = await paginate(async (cursor) => {
    const page = await listKeychain(target, catalogId, cursor ?? "", io.signal);
    return { items: page.entries, next: page.next_cursor };
  });
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
  io.stderr.write(`${count} of catalog entry ${catalogId} at ${target.url}\n`);
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

/** Which entry is deleted. */
interface EntryRef {
  name: string;
  query: URLSearchParams;
}

function entryRef({ options }: CliInput, name: string): EntryRef {
  const execution = textOption(options, "execution");
  const scope = textOption(options, "scope")?.toLowerCase() ?? "global";
  if (scope === "global" && execution !== undefined) {
    throw new FlowError("USAGE", "--execution goes with --scope local or shared: a global entry is of no execution");
  }
  if (scope !== "global" && execution === undefined) {
    const whose = scope === "local" ? "the execution whose entry it is" : "any execution of the tree whose entry it is";
    throw new FlowError("USAGE", `--scope ${scope} needs --execution ID: ${whose}`);
  }
  const query = new URLSearchParams({ scope_type: scope });
  if (execution !== undefined) query.set("execution_id", execution);
  return { name, query };
}

/** `flow keychain delete`: deletes one entry; it need not exist. */
async function remove(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [playbook = "", name = ""] = input.arguments;
  const entry = entryRef(input, name);
  const target = await serverTarget(input, loadConfig(io.environment));
  const execution = entry.query.get("execution_id");
  if (execution !== null) entry.query.set("execution_id", await resolveExecutionId(execution, target, io.signal));
  const answer = await deleteKeychainEntry(target, await catalogIdOf(target, playbook, input), entry, io.signal);
  io.stdout.write(options["json"] === true ? `${jsonText(answer)}\n` : `${answer.message}\n`);
  return EXIT.ok;
}

/** The word itself if it is a catalog id, else the id of the requested or newest version of the path. */
async function catalogIdOf(target: ServerTarget, playbook: string, { options, io }: CliInput): Promise<string> {
  const version = textOption(options, "version");
  if (/^[1-9]\d{0,15}$/.test(playbook)) {
    if (version === undefined) return playbook;
    throw new FlowError("USAGE", "--version goes with a path: a catalog id is of one version already");
  }
  return (await readResource(target, playbook, version, io.signal)).catalog_id;
}
