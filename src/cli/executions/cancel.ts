import { loadConfig } from "../../platform/config/config.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { cancelExecution } from "../server/executions-api.ts";
import { serverTarget } from "../server/target.ts";
import { jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

/** `flow cancel`: ends an execution and what it called. One that had ended before is told, and is no error. */
export async function cancelOne(input: CliInput): Promise<number> {
  const { options, io } = input;
  const target = await serverTarget(input, loadConfig(io.environment));
  const id = await executionArgument(input, target);
  const reason = textOption(options, "reason");
  const body = { ...(reason !== undefined && { reason }), cascade: options["no-cascade"] !== true };
  const answer = await cancelExecution(target, id, body, io.signal);
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  const { status, children_cancelled: children } = answer;
  const also = children > 0 ? `, and ${plural(children, "sub-playbook")} with it` : "";
  if (status === "CANCELLED") io.stdout.write(`Execution ${id} is CANCELLED${also}\n`);
  else io.stdout.write(`Execution ${id} had ended before: ${status}${also}\n`);
  return EXIT.ok;
}
