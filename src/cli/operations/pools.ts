import type { WorkerPoolItem } from "../../schema/api/workers.ts";
import { POOL_ROUTES } from "../../schema/routes/workers.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, listOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { printAnswer, printJson } from "../terminal/print-answer.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, labelText, plural } from "../terminal/text.ts";

/** `flow pools …`: the pools of workers of a server, each with a token of its own. */
export const POOL_ACTIONS = { list, create, rotate, revoke } satisfies Record<string, CliAction>;

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { target, call } = await openServer(input);
  const { items } = await call(POOL_ROUTES.list, {});
  if (options["json"] === true) return printJson(input, { items });
  writeTable(
    io.stdout,
    ["NAME", "PATHS", "LABELS", "CREATED", "TOKEN"],
    items.map((pool) => [pool.name, pool.paths.join(","), labelText(pool.labels), pool.created_at, tokenText(pool)]),
  );
  io.stderr.write(`${plural(items.length, "pool")} at ${target.url}\n`);
  return EXIT.ok;
}

function tokenText({ rotated_at, revoked_at }: WorkerPoolItem): string {
  if (revoked_at !== null) return `revoked ${revoked_at}`;
  return rotated_at === null ? "first" : `rotated ${rotated_at}`;
}

async function create(input: CliInput): Promise<number> {
  const [name = ""] = input.arguments;
  const paths = listOption(input.options, "paths");
  if (paths.length === 0) throw new FlowError("USAGE", "A pool needs the paths that it runs: --paths 'team/**'");
  const labels = Object.fromEntries(listOption(input.options, "labels").map(labelOf));
  const { call } = await openServer(input);
  return shown(input, await call(POOL_ROUTES.create, { body: { name, paths: [...paths], labels } }));
}

function labelOf(text: string): [string, string] {
  const [key = "", ...rest] = text.split("=");
  if (key === "" || rest.length === 0) throw new FlowError("USAGE", `--labels takes KEY=VALUE, got '${text}'`);
  return [key, rest.join("=")];
}

async function rotate(input: CliInput): Promise<number> {
  const [name = ""] = input.arguments;
  const { call } = await openServer(input);
  return shown(input, await call(POOL_ROUTES.rotate, { params: { name } }));
}

/** The token alone on standard output, so that it can be piped into a store of secrets. */
function shown(input: CliInput, pool: WorkerPoolItem & { token: string }): number {
  const { options, io } = input;
  if (options["json"] !== true) {
    const use = "for FLOW_WORKER_TOKEN of its workers. It is shown this once";
    io.stderr.write(`The token of pool '${cleanText(pool.name)}', ${use}:\n`);
  }
  return printAnswer(input, pool, pool.token);
}

async function revoke(input: CliInput): Promise<number> {
  const [name = ""] = input.arguments;
  const { call } = await openServer(input);
  const pool = await call(POOL_ROUTES.revoke, { params: { name } });
  return printAnswer(input, pool, `The token of pool '${pool.name}' is refused from now on`);
}
