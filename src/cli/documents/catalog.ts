import { loadConfig } from "../../platform/config/config.ts";
import { CatalogAnswer, type CatalogItem, VersionsAnswer } from "../../schema/api/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { encodePath, readResource } from "../server/catalog-api.ts";
import { callServer } from "../server/client.ts";
import { paginate } from "../server/paginate.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { writeTable } from "../terminal/table.ts";
import { plural } from "../terminal/text.ts";

/** `flow catalog [list|get|versions]`: what a server has registered. */
export async function showCatalog(input: CliInput): Promise<number> {
  const [action = "list", path] = input.arguments;
  if (action === "list" && path !== undefined) {
    throw new FlowError("USAGE", `'flow catalog list' takes no path; did you mean --prefix ${path}?`);
  }
  const target = await serverTarget(input, loadConfig(input.io.environment));
  if (action === "list") return await list(target, input);
  if (path === undefined) throw new FlowError("USAGE", `'flow catalog ${action}' needs the path of an entry`);
  return action === "get" ? await get(target, path, input) : await versions(target, path, input);
}

async function list(target: ServerTarget, { options, io }: CliInput): Promise<number> {
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

async function versions(target: ServerTarget, path: string, { options, io }: CliInput): Promise<number> {
  const found = await paginate(async (cursor) => {
    const query = withCursor(new URLSearchParams(), cursor);
    const page = await ask(target, `/api/catalog/versions/${encodePath(path)}?${query}`, VersionsAnswer, io);
    return { items: page.versions, next: page.next_cursor };
  });
  if (options["json"] === true) return print(io, { versions: found });
  writeItems(io, found);
  return EXIT.ok;
}

/** The document as it was registered, ready for a file; with --json all that the server says about it. */
async function get(target: ServerTarget, path: string, { options, io }: CliInput): Promise<number> {
  const version = textOption(options, "version");
  const entry = await readResource(target, path, version, io.signal);
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
