import { loadConfig } from "../../platform/config/config.ts";
import type { ArtifactItem } from "../../schema/api/results.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { writeTable } from "../terminal/table.ts";
import { jsonText } from "../terminal/text.ts";
import { resolveExecutionId } from "../watch/execution-id.ts";
import { fetchPayload } from "./result.ts";

/** `flow artifacts list`: the files that tasks of an execution have stored. */
export async function listArtifacts(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { answer, id } = await filesOf(input, await targetOf(input));
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  if (answer.artifacts.length === 0) {
    io.stderr.write(`Execution ${id} has stored no files\n`);
    return EXIT.ok;
  }
  const rows = answer.artifacts.map(({ name, step, content_type, bytes, sha256 }) => [
    ...[name, step, content_type, bytes.toLocaleString("en"), sha256],
  ]);
  writeTable(io.stdout, ["NAME", "STEP", "TYPE", "BYTES", "SHA256"], rows);
  if (answer.truncated) io.stderr.write(`There are more than these ${answer.artifacts.length}\n`);
  return EXIT.ok;
}

/** `flow artifacts get`: one of them, to standard output or to a file. */
export async function getArtifact(input: CliInput): Promise<number> {
  const target = await targetOf(input);
  const { answer, id } = await filesOf(input, target);
  const { ref } = chosen(answer.artifacts, id, input.arguments[1] ?? "", textOption(input.options, "step"));
  return await fetchPayload(input, target, ref);
}

function targetOf(input: CliInput): Promise<ServerTarget> {
  return serverTarget(input, loadConfig(input.io.environment));
}

async function filesOf({ arguments: [word = ""], io: { signal } }: CliInput, target: ServerTarget) {
  const id = await resolveExecutionId(word, target, signal);
  const answer = await callServer(target, RESULT_ROUTES.artifacts, { params: { execution_id: id }, signal });
  return { id, answer };
}

/** The last file of this name. Throws `FlowError` NOT_FOUND; USAGE where several steps have stored one and none is named. */
function chosen(files: readonly ArtifactItem[], id: string, name: string, step: string | undefined): ArtifactItem {
  const found = files.filter((file) => file.name === name && (step === undefined || file.step === step));
  const last = found.at(-1);
  if (last === undefined) {
    const of = step === undefined ? "" : ` of step '${step}'`;
    throw new FlowError(
      "NOT_FOUND",
      `Execution ${id} has no file '${name}'${of}. 'flow artifacts list ${id}' lists them`,
    );
  }
  const steps = [...new Set(found.map((file) => file.step))];
  if (steps.length === 1) return last;
  const named = steps.map((one) => `'${one}'`).join(", ");
  throw new FlowError("USAGE", `Several steps have stored a file '${name}': ${named}. Name one with --step`);
}
