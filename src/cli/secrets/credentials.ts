import { createInterface } from "node:readline/promises";
import { loadConfig } from "../../platform/config/config.ts";
import {
  CredentialAnswer,
  CredentialRecord,
  CredentialsAnswer,
  DeletedCredential,
} from "../../schema/api/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliIo, EXIT, textOption } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { writeTable } from "../terminal/table.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { readCredentialContent } from "./credential-content.ts";

/** `flow credentials list|get|set|delete`: the credentials of a server. Data are shown where that is asked for and confirmed. */
export async function manageCredentials(input: CliInput): Promise<number> {
  const [action = "list", name, ...fields] = input.arguments;
  if (fields.length > 0 && action !== "set") {
    throw new FlowError("USAGE", `'flow credentials ${action}' does not take '${fields[0]}'; fields are of 'set'`);
  }
  if (action === "list") {
    if (name !== undefined)
      throw new FlowError("USAGE", `'flow credentials list' takes no name; did you mean --search ${name}?`);
    return await list(await serverOf(input), input);
  }
  if (name === undefined) throw new FlowError("USAGE", `'flow credentials ${action}' needs the name of a credential`);
  if (action === "get") return await get(await serverOf(input), name, input);
  if (action === "delete") return await remove(await serverOf(input), name, input);
  // What is wrong with it is told before any server is asked.
  const content = await readCredentialContent(input, name, fields);
  return await set(await serverOf(input), content, input);
}

function serverOf(input: CliInput): Promise<ServerTarget> {
  return serverTarget(input, loadConfig(input.io.environment));
}

const PAGE = "500";

async function list(target: ServerTarget, { options, io }: CliInput): Promise<number> {
  const query = new URLSearchParams({ limit: PAGE });
  for (const [option, parameter] of [
    ["type", "type"],
    ["tag", "tag"],
    ["search", "q"],
  ] as const) {
    const value = Array.isArray(options[option]) ? options[option][0] : textOption(options, option);
    if (value !== undefined) query.set(parameter, value);
  }
  const items: CredentialRecord[] = [];
  for (let more: string | null = ""; more !== null; ) {
    if (more !== "") query.set("cursor", more);
    const path = `/api/credentials?${query}`;
    const page = await callServer(target, { method: "GET", path, answer: CredentialsAnswer, signal: io.signal });
    for (const item of page.items) items.push(item);
    more = page.next_cursor;
  }
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

async function get(target: ServerTarget, name: string, { options, io }: CliInput): Promise<number> {
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

/** Throws `FlowError` USAGE where nobody can be asked, CANCELLED where somebody says no. */
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

async function set(target: ServerTarget, body: unknown, { options, io }: CliInput): Promise<number> {
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

async function remove(target: ServerTarget, name: string, { options, io }: CliInput): Promise<number> {
  const path = `/api/credentials/${encodeURIComponent(name)}`;
  const answer = await callServer(target, { method: "DELETE", path, answer: DeletedCredential, signal: io.signal });
  if (options["json"] === true) return print(io, answer);
  io.stdout.write(`Credential '${cleanText(name)}' is gone from ${target.url}\n`);
  return EXIT.ok;
}

function jsonOrNothing(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function print(io: CliIo, value: unknown): number {
  io.stdout.write(`${jsonText(value)}\n`);
  return EXIT.ok;
}
