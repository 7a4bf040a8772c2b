import type { RotateAnswer } from "../../schema/api/secrets.ts";
import { SECRET_ROUTES } from "../../schema/routes/credentials.ts";
import { type CliInput, type CliIo, EXIT } from "../command-line/command.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { cleanText, formatCount, jsonText, plural } from "../terminal/text.ts";

/** Passes over all values: a value that another process holds during a pass is left to the next. */
const PASSES_MAX = 3;
/** Time limit of one call, which encrypts some hundred values. */
const ROUND_MS = 60_000;

/** `flow secrets rotate`: encrypts with the current key what older ones have encrypted, while the service works. */
export async function rotateSecrets(input: CliInput): Promise<number> {
  const { options, io } = input;
  const server = await openServer(input);
  const isQuiet = options["json"] === true;
  let rotated = 0;
  for (let pass = 1; ; pass += 1) {
    const { keyId, total, done, failed } = await rotateOnce(server, io, isQuiet);
    rotated += done;
    const left = total - done - failed.length;
    if (left > 0 && pass < PASSES_MAX) continue;
    if (isQuiet) io.stdout.write(`${jsonText({ key_id: keyId, rotated, left: Math.max(0, left), failed })}\n`);
    else printSummary(io, keyId, rotated, Math.max(0, left), failed);
    return left > 0 || failed.length > 0 ? EXIT.failed : EXIT.ok;
  }
}

async function rotateOnce({ call }: CommandServer, io: CliIo, isQuiet: boolean) {
  const failed: RotateAnswer["failed"] = [];
  let total = 0;
  let done = 0;
  let cursor: string | undefined;
  for (;;) {
    const answer = await call(SECRET_ROUTES.rotate, { body: { cursor } }, ROUND_MS);
    total = answer.total ?? total;
    done += answer.rotated;
    failed.push(...answer.failed);
    if (!isQuiet && answer.rotated > 0) {
      io.stderr.write(`${formatCount(done)} of ${formatCount(total)} encrypted with '${answer.key_id}'\n`);
    }
    if (answer.next_cursor === null) return { keyId: answer.key_id, total, done, failed };
    cursor = answer.next_cursor;
  }
}

function printSummary(io: CliIo, keyId: string, rotated: number, left: number, failed: RotateAnswer["failed"]): void {
  for (const { resource, message } of failed) io.stderr.write(`${cleanText(resource)}: ${cleanText(message)}\n`);
  if (failed.length > 0)
    io.stderr.write(`${plural(failed.length, "secret")} could not be decrypted and stayed as they are\n`);
  if (left > 0) io.stderr.write(`${plural(left, "secret")} are in use by other processes; run it again\n`);
  if (failed.length > 0 || left > 0) return;
  if (rotated === 0) io.stdout.write(`Nothing to do: every credential and keychain entry has the key '${keyId}'\n`);
  else
    io.stdout.write(
      `${plural(rotated, "secret")} re-encrypted: every credential and keychain entry has the key '${keyId}'\n`,
    );
}
