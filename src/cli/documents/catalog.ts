import { loadConfig } from "../../platform/config/config.ts";
import { CatalogAnswer, type CatalogItem, VersionsAnswer } from "../../schema/api/catalog.ts";
import { type CliAction, type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { encodePath, readResource } from "../server/catalog-api.ts";
import { callServer } from "../server/client.ts";
import { paginate } from "../server/paginate.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { writeTable } from "../terminal/table.ts";
import { plural } from "../terminal/text.ts";

/** `flow catalog …`: what a server has registered. */
export const CATALOG_ACTIONS = { list, get, versions } satisfies Record<string, CliAction>;

/** `flow catalog list`: the newest version of each path. */
async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const query = new URLSearchParams();
  const type = textOption(options, "type");
  const prefix = textOption(options, "prefix");
  if (type !== undefined) query.set("resource_type", type);
  if (prefix !== undefined) query.set("prefix", prefix);
  const resources = await paginate(async (cursor) => {
    const page = await ask(target, `/api/catalog?${withCursor(query, cursor)}`, CatalogAnswer, io);
    return { items: page.resources, next: page.next_cursor };
  });
  if (options["json"] === true) return print(io, { resources });
  writeItems(io, resources);
  io.stderr.write(`${plural(resources.length, "path")} at ${target.url}\n`);
  return EXIT.ok;
}

/** `flow catalog versions`: every version of a path. */
async function versions(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [path = ""] = input.arguments;
  const target = await serverTarget(input, loadConfig(io.environment));
  const found = await paginate(async (cursor) => {
    const query = withCursor(new URLSearchParams(), cursor);
    const page = await ask(target, `/api/catalog/versions/${encodePath(path)}?${query}`, VersionsAnswer, io);
    return { items: page.versions, next: page.next_cursor };
  });
  if (options["json"] === true) return print(io, { versions: found });
  writeItems(io, found);
  return EXIT.ok;
}

/** `flow catalog get`: the document as it was registered; with `--json` the server's whole answer. */
async function get(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [path = ""] = input.arguments;
  const target = await serverTarget(input, loadConfig(io.environment));
  const entry = await readResource(target, path, textOption(options, "version"), io.signal);
  if (options["json"] === true) return print(io, entry);
  io.stdout.write(entry.content.endsWith("\n") ? entry.content : `${entry.content}\n`);
  return EXIT.ok;
}

function ask<S extends Parameters<typeof callServer>[1]["answer"]>(
  target: ServerTarget,
  path: string,
  answer: S,
  io: CliIo,
) {
  return callServer(target, { method: "GET", path, answer, signal: io.signal });
}

const PAGE = "500";

function withCursor(query: URLSearchParams, cursor: string | undefined): URLSearchParams {
  query.set("limit", PAGE);
  if (cursor !== undefined) query.set("cursor", cursor);
  return query;
}

function writeItems(io: CliIo, items: readonly CatalogItem[]): void {
  const rows = items.map(({ path, kind, version, created_at }) => [path, kind, String(version), created_at]);
  writeTable(io.stdout, ["PATH", "KIND", "VERSION", "REGISTERED"], rows);
}

function print(io: CliIo, value: unknown): number {
  io.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
  return EXIT.ok;
}
