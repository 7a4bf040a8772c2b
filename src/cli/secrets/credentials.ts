import type { CredentialRecord } from "../../schema/api/credentials.ts";
import { CREDENTIAL_ROUTES } from "../../schema/routes/credentials.ts";
import type { CredentialType } from "../../schema/rules/credential-types.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, type CliIo, EXIT, listOption, textOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { isConfirmed } from "../terminal/confirm.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { readCredentialContent } from "./credential-content.ts";

/** `flow credentials …`: the credentials of a server. Data are shown only on request, after a confirmation. */
export const CREDENTIAL_ACTIONS = { list, get, set, paths, delete: remove } satisfies Record<string, CliAction>;

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const server = await openServer(input);
  const [tag] = listOption(options, "tag");
  const type = textOption(options, "type") as CredentialType | undefined;
  const query = { type, tag, q: textOption(options, "search") };
  const items = await server.all(CREDENTIAL_ROUTES.list, { query }, (page) => page.items);
  if (options["json"] === true) return print(io, { items });
  writeTable(
    io.stdout,
    ["NAME", "TYPE", "PLAYBOOKS", "TAGS", "UPDATED", "DESCRIPTION"],
    items.map(({ name, type, playbooks, tags, updated_at, description }) => [
      name,
      type,
      playbooksText(playbooks, ","),
      tags.join(","),
      updated_at,
      description ?? "",
    ]),
  );
  io.stderr.write(`${plural(items.length, "credential")} at ${server.target.url}\n`);
  return EXIT.ok;
}

async function get(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = ""] = input.arguments;
  const server = await openServer(input);
  const withData = options["include-data"] === true;
  if (withData) await confirm(io, name, options["yes"] === true);
  const query = { include_data: withData ? "true" : undefined } as const;
  const found = await server.call(CREDENTIAL_ROUTES.read, { params: { identifier: name }, query });
  if (options["json"] === true) return print(io, found);
  const { data, playbooks, tags, schema, meta, ...texts } = found;
  const rows = Object.entries({
    ...texts,
    playbooks: playbooksText(playbooks, ", "),
    tags: tags.join(","),
    schema: jsonOrNothing(schema),
    meta: jsonOrNothing(meta),
  });
  for (const [key, value] of rows) if (value) io.stdout.write(`${`${key}:`.padEnd(13)}${cleanText(value)}\n`);
  if (data !== undefined) io.stdout.write(`data:\n${jsonText(data)}\n`);
  return EXIT.ok;
}

/** Throws `FlowError` USAGE without a terminal to ask at, CANCELLED if the answer is no. */
async function confirm(io: CliIo, name: string, isSaid: boolean): Promise<void> {
  io.stderr.write(`The data of '${cleanText(name)}' will be shown in CLEAR TEXT; the server's audit log records it.\n`);
  if (isSaid) return;
  const { stdin } = io;
  if (stdin?.isTTY !== true || io.stderr.isTTY !== true) {
    throw new FlowError("USAGE", "--include-data asks first, and there is no terminal here: add --yes");
  }
  if (!(await isConfirmed(io, "Show them?"))) throw new FlowError("CANCELLED", "nothing was shown");
}

async function set(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = "", ...fields] = input.arguments;
  // Problems of the data are reported before any server is called.
  const body = await readCredentialContent(input, name, fields);
  const { target, call } = await openServer(input);
  const record = await call(CREDENTIAL_ROUTES.save, { body });
  if (options["json"] === true) return print(io, record);
  io.stdout.write(`Credential '${cleanText(record.name)}' (${record.type}) is set at ${target.url}\n`);
  tellPlaybooks(io, record);
  return EXIT.ok;
}

async function paths(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = "", ...playbooks] = input.arguments;
  if ((playbooks.length === 0) !== (options["none"] === true)) {
    const hint = "give paths or patterns ('etl/**'; '**' is all), or --none";
    throw new FlowError("USAGE", `Which playbooks may use '${cleanText(name)}'? After the name ${hint}`);
  }
  const { call } = await openServer(input);
  const record = await call(CREDENTIAL_ROUTES.playbooks, { params: { identifier: name }, body: { playbooks } });
  if (options["json"] === true) return print(io, record);
  tellPlaybooks(io, record);
  return EXIT.ok;
}

/** Empty for a server of an older version, which does not say it. */
function playbooksText(playbooks: readonly string[] | undefined, between: string): string {
  return playbooks?.length === 0 ? "none" : (playbooks ?? []).join(between);
}

/** Who may use it; without anyone, how to say it. */
function tellPlaybooks(io: CliIo, { name, playbooks }: CredentialRecord): void {
  if (playbooks === undefined) return;
  const called = cleanText(name);
  if (playbooks.length > 0) {
    io.stdout.write(`Playbooks that may use '${called}': ${cleanText(playbooks.join(", "))}\n`);
    return;
  }
  const remedy = `flow credentials paths ${called} 'PATH/**' (or --paths with 'set')`;
  io.stderr.write(`No playbook may use '${called}' yet. Allow some: ${remedy}\n`);
}

async function remove(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = ""] = input.arguments;
  const { target, call } = await openServer(input);
  const answer = await call(CREDENTIAL_ROUTES.remove, { params: { identifier: name } });
  if (options["json"] === true) return print(io, answer);
  io.stdout.write(`Credential '${cleanText(name)}' was deleted from ${target.url}\n`);
  return EXIT.ok;
}

function jsonOrNothing(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function print(io: CliIo, value: unknown): number {
  io.stdout.write(`${jsonText(value)}\n`);
  return EXIT.ok;
}
