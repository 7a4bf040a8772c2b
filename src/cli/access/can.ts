import { loadConfig } from "../../platform/config/config.ts";
import { ACCESS_ACTIONS } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { checkAccess } from "../server/access-api.ts";
import { serverTarget } from "../server/target.ts";
import { printAnswer } from "../terminal/print-answer.ts";

/** `flow can <action> <path>`: whether a user may, and the rule that says so. A no is exit code 1, for scripts. */
export async function showAccess(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [word, path = ""] = input.arguments;
  const action = ACCESS_ACTIONS.find((known) => known === word);
  if (action === undefined) throw new FlowError("USAGE", `An action is one of ${ACCESS_ACTIONS.join(", ")}`);
  const email = textOption(options, "user");
  const target = await serverTarget(input, loadConfig(io.environment));
  const answer = await checkAccess(
    { target, signal: io.signal },
    { action, path, ...(email !== undefined && { email }) },
  );
  // The rule of a refusal begins with what the word says already.
  printAnswer(input, answer, `${answer.allowed ? "yes" : "no"}: ${answer.rule.replace(/^no role: /, "")}`);
  return answer.allowed ? EXIT.ok : EXIT.failed;
}
