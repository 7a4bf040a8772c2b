import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { readJson } from "../documents/inputs.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

/** `flow signal`: sends a signal to one execution, or to everyone who waits for it. */
export async function sendSignal(input: CliInput): Promise<number> {
  const { arguments: words, options, io } = input;
  const [first = "", second] = words;
  const given = textOption(options, "data");
  const retain = textOption(options, "retain");
  if (second === undefined && /^\d+$/.test(first))
    throw new FlowError("USAGE", `Give the name of the signal too: flow signal ${first} NAME`);
  if (second !== undefined && retain !== undefined)
    throw new FlowError("USAGE", "--retain is for signals to everyone: an execution keeps its signals until it ends");
  const data = given === undefined ? null : await readJson(given, io.folder, "data");
  const server = await openServer(input);
  const body = { data, ...defined({ key: textOption(options, "key"), id: textOption(options, "id") }) };
  const sent =
    second === undefined
      ? toEveryone(server, first, { ...body, ...defined({ retain }) })
      : toOne(input, server, second, body);
  const { answer, text } = await sent;
  io.stdout.write(options["json"] === true ? `${jsonText(answer)}\n` : `${cleanText(text)}\n`);
  return EXIT.ok;
}

/** What the server has answered, and that in words. */
interface Sent {
  answer: JsonObject;
  text: string;
}

async function toOne(input: CliInput, server: CommandServer, name: string, body: JsonObject): Promise<Sent> {
  const id = await executionArgument(input, server.target);
  const answer = await server.call(STEERING_ROUTES.signal, { params: { execution_id: id, name }, body });
  const what = answer.duplicate
    ? REPEATED
    : answer.kept
      ? `no step waits for it now, and the execution keeps it${await awaited(server, id)}`
      : "a step goes on with it";
  return { answer, text: `Signal '${name}' was sent to execution ${id}: ${what}` };
}

async function toEveryone({ call }: CommandServer, name: string, body: JsonObject): Promise<Sent> {
  const answer = await call(STEERING_ROUTES.signalAll, { params: { name }, body });
  const { reached, kept, duplicate } = answer;
  const none = kept
    ? "no step waits for it now, and it is kept for the first that will"
    : "no step waits for it, and it is not kept";
  const what = duplicate ? REPEATED : reached > 0 ? `${plural(reached, "wait")} ended with it` : none;
  return { answer, text: `Signal '${name}' was sent to everyone: ${what}` };
}

const REPEATED = "it was sent before, and nothing has changed";

/** The signals for which it waits: a name or a key may be a slip. */
async function awaited({ call }: CommandServer, id: string): Promise<string> {
  const { waiting_for: waiting = [] } = await call(EXECUTION_ROUTES.detail, { params: { execution_id: id } });
  const signals = waiting.filter(({ kind }) => kind === "signal");
  const texts = signals.map(({ name, key }) => `'${name}'${key === undefined ? "" : ` with key '${key}'`}`);
  const [first, ...others] = [...new Set(texts)];
  if (first === undefined) return "";
  return `. It waits for ${first}${others.length === 0 ? "" : ` and ${plural(others.length, "other signal")}`}`;
}
