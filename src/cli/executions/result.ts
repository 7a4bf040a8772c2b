import { createHash } from "node:crypto";
import { once } from "node:events";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { loadConfig } from "../../platform/config/config.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type OpenAnswer, openAnswer } from "../server/client.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { jsonText } from "../terminal/text.ts";

/** Longest payload that is printed on a terminal. */
const TERMINAL_BYTES_MAX = 1_048_576;

/** Size and checksum of a received payload. */
interface ReceivedPayload {
  bytes: number;
  sha256: string;
}

/** `flow result get <ref>`: a stored payload, to standard output or to a file. */
export async function getResult(input: CliInput): Promise<number> {
  const [ref = ""] = input.arguments;
  return await fetchPayload(input, await serverTarget(input, loadConfig(input.io.environment)), ref);
}

/** Fetches a payload to where the options say. Returns the exit code; throws `FlowError` as {@link openAnswer} does, and USAGE. */
export async function fetchPayload(input: CliInput, target: ServerTarget, ref: string): Promise<number> {
  const { options, io } = input;
  const payload = await openAnswer(target, RESULT_ROUTES.resolveApi, { query: { ref }, signal: io.signal });
  const output = textOption(options, "output");
  const contentType = payload.headers.get("content-type") ?? "";
  const printJson = (received: ReceivedPayload, more: Record<string, unknown>) =>
    io.stdout.write(`${jsonText({ ref, content_type: contentType, ...received, ...more })}\n`);
  if (output !== undefined && output !== "-") {
    const file = resolve(io.folder, output);
    const received = await toFile(payload, file);
    if (options["json"] === true) printJson(received, { file });
    else io.stderr.write(`${received.bytes} bytes written to ${output}\n`);
    return EXIT.ok;
  }
  if (options["json"] === true) {
    const { text, ...received } = await toText(payload, Number.POSITIVE_INFINITY);
    printJson(received, { payload: isJson(contentType) ? (JSON.parse(text) as Json) : text });
    return EXIT.ok;
  }
  if (io.stdout.isTTY === true && output === undefined) await toTerminal(payload, contentType, input);
  else await toPipe(payload, input);
  return EXIT.ok;
}

/** Only text goes to a terminal, without characters that it would obey. */
async function toTerminal(payload: OpenAnswer, contentType: string, { io }: CliInput): Promise<void> {
  if (!isJson(contentType) && !contentType.startsWith("text/")) throw notForTerminal(`it is ${contentType}, no text`);
  const { text } = await toText(payload, TERMINAL_BYTES_MAX);
  const safe = text.replace(CONTROLS, "\ufffd");
  io.stdout.write(safe.endsWith("\n") ? safe : `${safe}\n`);
}

/** What moves the cursor, sets the title, or turns the direction of writing. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Writes at the reader's speed; a reader that closes the pipe ends it. */
async function toPipe(payload: OpenAnswer, { io }: CliInput): Promise<void> {
  let isRead = true;
  io.stdout.once("error", () => {
    isRead = false;
  });
  await receive(payload, async (part) => {
    if (isRead && !io.stdout.write(part)) {
      // An error ends the wait too; `main.ts` reports errors of standard output.
      await Promise.race([once(io.stdout, "drain"), once(io.stdout, "close")]).catch(() => undefined);
    }
    return isRead;
  });
}

async function toText(payload: OpenAnswer, bytesMax: number): Promise<ReceivedPayload & { text: string }> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  const received = await receive(payload, async (part) => {
    bytes += part.byteLength;
    if (bytes > bytesMax) throw notForTerminal(`it is longer than ${bytesMax.toLocaleString("en")} bytes`);
    parts.push(part);
    return true;
  });
  return { ...received, text: Buffer.concat(parts).toString("utf8") };
}

/** Written beside its place and renamed when complete. */
async function toFile(payload: OpenAnswer, file: string): Promise<ReceivedPayload> {
  const part = `${file}.part`;
  let handle: FileHandle | undefined;
  try {
    handle = await writable(() => open(part, "w"));
    const opened = handle;
    const received = await receive(payload, async (bytes) => {
      await writable(() => opened.appendFile(bytes));
      return true;
    });
    await handle.close();
    await writable(() => rename(part, file));
    return received;
  } catch (error) {
    await handle?.close().catch(() => undefined);
    if (handle !== undefined) await rm(part, { force: true });
    throw error;
  }

  async function writable<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } catch (cause) {
      throw new FlowError("FILE_UNREADABLE", `Cannot write ${file}: ${messageOf(cause)}`, { cause });
    }
  }
}

/** Gives each part to `take` until it returns false; compares the checksum with the server's, if it sent one. */
async function receive(payload: OpenAnswer, take: (part: Uint8Array) => Promise<boolean>): Promise<ReceivedPayload> {
  const hash = createHash("sha256");
  let bytes = 0;
  let isWhole = true;
  for await (const part of payload.parts) {
    hash.update(part);
    bytes += part.byteLength;
    isWhole = await take(part);
    if (!isWhole) break;
  }
  const sha256 = hash.digest("hex");
  // What holds secrets is shown with a mask, and has no tag.
  const promised = /^"([0-9a-f]{64})"$/.exec(payload.headers.get("etag") ?? "")?.[1];
  if (isWhole && promised !== undefined && promised !== sha256) {
    const why = `what received has the sha256 ${sha256}, not ${promised}`;
    throw new FlowError("SERVER_UNREACHABLE", `The result was damaged on its way: ${why}. Try again`);
  }
  return { bytes, sha256 };
}

function isJson(contentType: string): boolean {
  return /^[^;]*[/+]json *(;|$)/.test(contentType);
}

function notForTerminal(why: string): FlowError {
  const hint = "Write it to a file with -o FILE, pipe it, or send it to the terminal nevertheless with '-o -'";
  return new FlowError("USAGE", `The result is not printed on a terminal: ${why}. ${hint}`);
}
