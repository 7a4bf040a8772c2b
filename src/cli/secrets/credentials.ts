import { createInterface } from "node:readline/promises";
import { loadConfig } from "../../platform/config/config.ts";
import {
  CredentialAnswer,
  CredentialRecord,
  CredentialsAnswer,
  DeletedCredential,
} from "../../schema/api/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import { paginate } from "../server/paginate.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { readCredentialContent } from "./credential-content.ts";

/** `flow credentials …`: the credentials of a server. Data are shown only on request, after a confirmation. */
export const CREDENTIAL_ACTIONS = { list, get, set, delete: remove } satisfies Record<string, CliAction>;

function serverOf(input: CliInput): Promise<ServerTarget> {
  return serverTarget(input, loadConfig(input.io.environment));
}

const PAGE = "500";

async function list(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverOf(input);
  const query = new URLSearchParams({ limit: PAGE });
  for (const [option, parameter] of [
    ["type", "type"],
    ["tag", "tag"],
    ["search", "q"],
  ] as const) {
    const value = Array.isArray(options[option]) ? options[option][0] : textOption(options, option);
    if (value !== undefined) query.set(parameter, value);
  }
  const items = await paginate(async (cursor) => {
    if (cursor !== undefined) query.set("cursor", cursor);
    const path = `/api/credentials?${query}`;
    const page = await callServer(target, { method: "GET", path, answer: CredentialsAnswer, signal: io.signal });
    return { items: page.items, next: page.next_cursor };
  });
  if (options["json"] === true) return print(io, { items });
  writeTable(
    io.stdout,
    ["NAME", "TYPE", "TAGS", "UPDATED", "DESCRIPTION"],
    items.map(({ name, type, tags, updated_at, description }) => [
      name,
      type,
      tags.join(","),
      updated_at,
      description ?? "",
    ]),
  );
  io.stderr.write(`${plural(items.length, "credential")} at ${target.url}\n`);
  return EXIT.ok;
}

async function get(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = ""] = input.arguments;
  const target = await serverOf(input);
  const withData = options["include-data"] === true;
  if (withData) await confirm(io, name, options["yes"] === true);
  const path = `/api/credentials/${encodeURIComponent(name)}${withData ? "?include_data=true" : ""}`;
  const found = await callServer(target, { method: "GET", path, answer: CredentialAnswer, signal: io.signal });
  if (options["json"] === true) return print(io, found);
  const { data, tags, schema, meta, ...texts } = found;
  const rows = Object.entries({
    ...texts,
    tags: tags.join(","),
    schema: jsonOrNothing(schema),
    meta: jsonOrNothing(meta),
  });
  for (const [key, value] of rows) if (value) io.stdout.write(`${`${key}:`.padEnd(13)}${cleanText(value)}\n`);
  if (data !== undefined) io.stdout.write(`data:\n${jsonText(data)}\n`);
  return EXIT.ok;
}

/** Throws `FlowError` USAGE without a terminal to ask at, CANCELLED if the answer is no. */
async function confirm(io: CliIo, name: string, isConfirmed: boolean): Promise<void> {
  io.stderr.write(`The data of '${cleanText(name)}' will be shown in CLEAR TEXT; the server's audit log records it.\n`);
  if (isConfirmed) return;
  const { stdin } = io;
  if (stdin?.isTTY !== true || io.stderr.isTTY !== true) {
    throw new FlowError("USAGE", "--include-data asks first, and there is no terminal here: add --yes");
  }
  const reader = createInterface({ input: stdin, output: io.stderr });
  try {
    const answer = await reader.question("Show them? [y/N] ", { signal: io.signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new FlowError("CANCELLED", "nothing was shown");
  } finally {
    reader.close();
  }
}

async function set(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = "", ...fields] = input.arguments;
  // Problems of the data are reported before any server is called.
  const body = await readCredentialContent(input, name, fields);
  const target = await serverOf(input);
  const request = {
    method: "POST" as const,
    path: "/api/credentials",
    body,
    answer: CredentialRecord,
    signal: io.signal,
  };
  const record = await callServer(target, request);
  if (options["json"] === true) return print(io, record);
  io.stdout.write(`Credential '${cleanText(record.name)}' (${record.type}) is set at ${target.url}\n`);
  return EXIT.ok;
}

async function remove(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [name = ""] = input.arguments;
  const target = await serverOf(input);
  const path = `/api/credentials/${encodeURIComponent(name)}`;
  const answer = await callServer(target, { method: "DELETE", path, answer: DeletedCredential, signal: io.signal });
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
