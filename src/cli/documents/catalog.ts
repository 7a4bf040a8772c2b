import type { CatalogItem } from "../../schema/api/catalog.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { type CliAction, type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, plural } from "../terminal/text.ts";

/** `flow catalog …`: what a server has registered. */
export const CATALOG_ACTIONS = { list, get, versions, pause, resume } satisfies Record<string, CliAction>;

/** `flow catalog list`: the newest version of each path. */
async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { target, all } = await openServer(input);
  const query = { resource_type: textOption(options, "type"), prefix: textOption(options, "prefix") };
  const resources = await all(CATALOG_ROUTES.list, { query }, (page) => page.resources);
  if (options["json"] === true) return print(io, { resources });
  writeItems(io, resources);
  io.stderr.write(`${plural(resources.length, "path")} at ${target.url}\n`);
  return EXIT.ok;
}

/** `flow catalog versions`: every version of a path. */
async function versions(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [path = ""] = input.arguments;
  const { all } = await openServer(input);
  const found = await all(CATALOG_ROUTES.versions, { params: { path } }, (page) => page.versions);
  if (options["json"] === true) return print(io, { versions: found });
  writeItems(io, found);
  return EXIT.ok;
}

/** `flow catalog get`: the document as it was registered; with `--json` the server's whole answer. */
async function get(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [path = ""] = input.arguments;
  const { call } = await openServer(input);
  const query = { version: textOption(options, "version") };
  const entry = await call(CATALOG_ROUTES.resource, { params: { path }, query });
  if (options["json"] === true) return print(io, entry);
  io.stdout.write(entry.content.endsWith("\n") ? entry.content : `${entry.content}\n`);
  return EXIT.ok;
}

/** `flow catalog pause`: nothing of a path is started before it is resumed. */
async function pause(input: CliInput): Promise<number> {
  return await steer(input, "pause");
}

/** `flow catalog resume`: executions of a path are started again. */
async function resume(input: CliInput): Promise<number> {
  return await steer(input, "resume");
}

async function steer(input: CliInput, what: "pause" | "resume"): Promise<number> {
  const { options, io } = input;
  const [path = ""] = input.arguments;
  const { call } = await openServer(input);
  const reason = textOption(options, "reason");
  const body = reason === undefined ? {} : { reason };
  const answer = await call(CATALOG_ROUTES[what], { params: { path }, body });
  if (options["json"] === true) return print(io, answer);
  const { paused } = answer;
  if (paused === null) {
    io.stdout.write(`${path} is started again\n`);
    return EXIT.ok;
  }
  const why = paused.reason === null ? "" : `: ${cleanText(paused.reason)}`;
  io.stdout.write(`${path} is paused since ${paused.since}${why}\n`);
  io.stdout.write(`Running executions continue. Next: flow catalog resume ${path}\n`);
  return EXIT.ok;
}

function writeItems(io: CliIo, items: readonly CatalogItem[]): void {
  const hasPause = items.some(({ paused }) => paused !== undefined);
  const rows = items.map(({ path, kind, version, created_at, paused }) => [
    ...[path, kind, String(version), created_at],
    ...(hasPause ? [paused === undefined ? "" : `since ${paused.since}`] : []),
  ]);
  writeTable(io.stdout, ["PATH", "KIND", "VERSION", "REGISTERED", ...(hasPause ? ["PAUSED"] : [])], rows);
}

function print(io: CliIo, value: unknown): number {
  io.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
  return EXIT.ok;
}
