import { createInterface, type Interface } from "node:readline/promises";
import {
  type AnswerApproval,
  fieldsOf,
  givenAnswers,
  type LocalAnswer,
  type LocalQuestion,
} from "../../local/approvals.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { type CliInput, type CliIo, listOption } from "../command-line/command.ts";
import { cleanText } from "../terminal/text.ts";

/**
 * Who answers the approvals of a run here: `--answer`, then `--yes`, then the person at the terminal. `quietDown` is called before the
 * first question: the picture of the run would draw over it. Throws `FlowError` USAGE.
 */
export function approvalAnswers({ options, io }: CliInput, quietDown: () => void): AnswerApproval {
  const answers: Record<string, LocalAnswer[]> = {};
  for (const text of listOption(options, "answer")) {
    const [step, answer] = answerOf(text);
    setOwn(answers, step, [...((own(answers, step) as LocalAnswer[] | undefined) ?? []), answer]);
  }
  const all = options["yes"] === true;
  const asker = io.stdin?.isTTY === true ? terminalAsker(io, quietDown) : undefined;
  return givenAnswers(answers, async (question, signal) => {
    if (!all) return await asker?.(question, signal);
    const { step, problem } = question;
    if (problem === undefined) return { decision: "approve", afterMs: 0 };
    throw new FlowError(
      "INVALID_INPUT",
      `The approval of step '${step}' takes more than --yes: ${problem}. Give --answer '${step}=approve:JSON'`,
    );
  });
}

const EXPECTED = `--answer takes STEP=approve or STEP=reject, with data STEP=approve:JSON`;

function answerOf(text: string): [step: string, answer: LocalAnswer] {
  const [, step = "", decision, json] = /^([^=]+)=(approve|reject)(?::(.*))?$/s.exec(text) ?? [];
  if (decision !== "approve" && decision !== "reject") throw new FlowError("USAGE", `${EXPECTED}; got '${text}'`);
  if (json === undefined) return [step, { decision, afterMs: 0 }];
  try {
    return [step, { decision, data: JSON.parse(json) as Json, afterMs: 0 }];
  } catch (cause) {
    throw new FlowError("USAGE", `${EXPECTED}; what follows the colon in '${text}' is not JSON`, { cause });
  }
}

/** Asks one question after the other. */
function terminalAsker(io: CliIo, quietDown: () => void): AnswerApproval {
  let last: Promise<unknown> = Promise.resolve();
  return (question, signal) => {
    const answer = last.then(async () => {
      quietDown();
      return await ask(io, question, AbortSignal.any([signal, io.signal]));
    });
    last = answer.catch(() => undefined);
    return answer;
  };
}

async function ask(
  { stdin, stderr }: CliIo,
  { step, request, problem }: LocalQuestion,
  signal: AbortSignal,
): Promise<LocalAnswer | undefined> {
  if (stdin === undefined) return undefined;
  const reader = createInterface({ input: stdin, output: stderr });
  try {
    const about = [`${step} asks: ${request.title}`, ...(request.description ?? "").split("\n")];
    for (const line of problem === undefined ? about : [problem]) stderr.write(`${cleanText(line)}\n`);
    for (;;) {
      const word = (await reader.question("Approve or reject? [a/r] ", { signal })).trim();
      const decision = /^(a|approve|y|yes)$/i.test(word)
        ? "approve"
        : /^(r|reject|n|no)$/i.test(word)
          ? "reject"
          : undefined;
      if (decision === undefined) continue;
      const data = decision === "approve" ? await askFields(reader, request, signal) : undefined;
      const comment = (await reader.question("Comment (may be empty): ", { signal })).trim();
      return { decision, afterMs: 0, ...(data !== undefined && { data }), ...(comment !== "" && { comment }) };
    }
  } finally {
    reader.close();
  }
}

/** One question for each field of the form; of a form without fields its data as JSON. */
async function askFields(
  reader: Interface,
  request: LocalQuestion["request"],
  signal: AbortSignal,
): Promise<Json | undefined> {
  if (request.form === undefined) return undefined;
  const fields = fieldsOf(request);
  if (fields.length === 0) return parsed(await reader.question("Data, as JSON: ", { signal }));
  const data: JsonObject = {};
  for (const { name, schema, isRequired } of fields) {
    const text = await reader.question(`${cleanText(name)}${hintOf(schema, isRequired)}: `, { signal });
    if (text.trim() === "") continue;
    const isText = isJsonObject(schema) && schema["type"] === "string";
    setOwn(data, name, isText ? text.trim() : parsed(text));
  }
  return data;
}

function hintOf(schema: Json, isRequired: boolean): string {
  const choices = isJsonObject(schema) ? schema["enum"] : undefined;
  const what = Array.isArray(choices) ? [choices.map(String).join(", ")] : [];
  const told = [...what, ...(isRequired ? [] : ["may be empty"])];
  return told.length === 0 ? "" : ` (${cleanText(told.join("; "))})`;
}

/** JSON where it is that, else the text. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text.trim();
  }
}
