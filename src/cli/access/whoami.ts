import { AUTH_ROUTES } from "../../schema/routes/auth.ts";
import { ACCESS_ACTIONS } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { openServer } from "../server/open-server.ts";
import { printAnswer } from "../terminal/print-answer.ts";
import { cleanText, jsonText } from "../terminal/text.ts";

/** `flow whoami`: the identity that commands call with, its roles, and its global permissions. */
export async function showIdentity(input: CliInput): Promise<number> {
  const { options, io } = input;
  const { target, call } = await openServer(input);
  const me = await call(AUTH_ROUTES.me, {});
  const at = `at ${target.url} (${target.origin})`;
  if (options["json"] === true) io.stdout.write(`${jsonText({ server: target.url, ...me })}\n`);
  else if (me.kind !== "user") io.stdout.write(`${cleanText(`The ${me.kind} ${at}`)}\n`);
  else {
    const { display_name, email, user_id, roles, permissions, expires_at } = me;
    io.stdout.write(`${cleanText(`${display_name} <${email}>, user ${user_id} ${at}`)}\n`);
    const rows = [
      ["roles:", roles.join(", ") || "none: an administrator grants them"],
      ["permissions:", permissions.join(", ") || "no global ones"],
      ["session:", `until ${expires_at}`],
    ] as const;
    for (const [label, text] of rows) io.stdout.write(`${label.padEnd(14)}${cleanText(text)}\n`);
  }
  return EXIT.ok;
}

/** `flow can <action> <path>`: whether a user has access, and which rule decides. "No" is exit code 1, for scripts. */
export async function showAccess(input: CliInput): Promise<number> {
  const [word, path = ""] = input.arguments;
  const action = ACCESS_ACTIONS.find((known) => known === word);
  if (action === undefined) throw new FlowError("USAGE", `The action must be one of ${ACCESS_ACTIONS.join(", ")}`);
  const email = textOption(input.options, "user");
  const answer = await (await openServer(input)).call(AUTH_ROUTES.can, { body: { action, path, email } });
  // A refusal's rule starts with "no role: ", which repeats the "no".
  printAnswer(input, answer, `${answer.allowed ? "yes" : "no"}: ${answer.rule.replace(/^no role: /, "")}`);
  return answer.allowed ? EXIT.ok : EXIT.failed;
}
