import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { readJson } from "../documents/inputs.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

/** `flow signal`: sends a signal to an execution. */
export async function sendSignal(input: CliInput): Promise<number> {
  const { arguments: words, options, io } = input;
  const [, name = ""] = words;
  const given = textOption(options, "data");
  const data = given === undefined ? null : await readJson(given, io.folder, "data");
  const server = await openServer(input);
  const id = await executionArgument(input, server.target);
  const body = { data, ...defined({ key: textOption(options, "key"), id: textOption(options, "id") }) };
  const answer = await server.call(STEERING_ROUTES.signal, { params: { execution_id: id, name }, body });
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  const what = answer.duplicate
    ? "it was sent before, and nothing has changed"
    : answer.kept
      ? `no step waits for it now, and the execution keeps it${await awaited(server, id)}`
      : "a step goes on with it";
  io.stdout.write(`${cleanText(`Signal '${name}' was sent to execution ${id}: ${what}`)}\n`);
  return EXIT.ok;
}

/** The signals for which it waits: a name or a key may be a slip. */
async function awaited({ call }: CommandServer, id: string): Promise<string> {
  const { waiting_for: waiting = [] } = await call(EXECUTION_ROUTES.detail, { params: { execution_id: id } });
  const signals = waiting.filter(({ kind }) => kind === "signal");
  const texts = signals.map(({ name, key }) => `'${name}'${key === undefined ? "" : ` with key '${key}'`}`);
  const [first, ...others] = [...new Set(texts)];
  if (first === undefined) return "";
  return `. It waits for ${first}${others.length === 0 ? "" : ` and ${plural(others.length, "other signal")}`}`;
}
