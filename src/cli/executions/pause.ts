import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { type CommandServer, openServer } from "../server/open-server.ts";
import { jsonText, plural } from "../terminal/text.ts";
import { executionArgument } from "../watch/execution-id.ts";

/** `flow pause`: nothing further is issued or claimed in an execution and its sub-playbooks. */
export async function pauseOne(input: CliInput): Promise<number> {
  return await steer(input, "pause");
}

/** `flow resume`: an execution and its sub-playbooks go on. */
export async function resumeOne(input: CliInput): Promise<number> {
  return await steer(input, "resume");
}

async function steer(input: CliInput, what: "pause" | "resume"): Promise<number> {
  const { options, io } = input;
  const server = await openServer(input);
  const id = await executionArgument(input, server.target);
  if (options["dry-run"] === true) return await preview(input, server, id, what);
  const reason = textOption(options, "reason");
  const body = { cascade: options["no-cascade"] !== true, ...(reason !== undefined && { reason }) };
  const answer = await server.call(EXECUTION_ROUTES[what], { params: { execution_id: id }, body });
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  const { status, children } = answer;
  const also = children > 0 ? `, and ${plural(children, "sub-playbook")} with it` : "";
  io.stdout.write(`Execution ${id} is ${status}${also}\n`);
  if (what === "pause") io.stdout.write(`Tasks that workers hold run to their end. Next: flow resume ${id}\n`);
  return EXIT.ok;
}

/** Open sub-playbooks that a preview counts. */
const CHILDREN_MAX = 1_000;

/** `--dry-run`: what it would do, from what the execution does now. */
async function preview(
  { options, io }: CliInput,
  { call, first }: CommandServer,
  id: string,
  what: "pause" | "resume",
): Promise<number> {
  const { status, ended_at, commands = [] } = await call(EXECUTION_ROUTES.detail, { params: { execution_id: id } });
  const query = { parent_execution_id: id, status: what === "pause" ? "PENDING,RUNNING" : "PAUSED" };
  const { items } =
    options["no-cascade"] === true
      ? { items: [] }
      : await first(EXECUTION_ROUTES.list, { query }, ({ executions }) => executions, CHILDREN_MAX);
  const held = commands.filter(({ worker }) => worker !== null).length;
  const isChange = ended_at === null && (status === "PAUSED") === (what === "resume");
  const plan = { execution_id: id, status, action: isChange ? what : "none", held, waiting: commands.length - held };
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ ...plan, children: items.length })}\n`);
    return EXIT.ok;
  }
  const done = what === "pause" ? "paused" : "resumed";
  const also = items.length === 0 ? "" : `, and ${plural(items.length, "sub-playbook")} with it`;
  io.stdout.write(
    `Execution ${id} is ${status}: ${isChange ? `it would be ${done}` : "nothing would change"}${also}\n`,
  );
  if (!isChange) return EXIT.ok;
  const go = what === "pause" ? "would go on" : "go on";
  const wait = what === "pause" ? "would not be claimed" : "would be claimed";
  io.stdout.write(`  ${plural(held, "command")} of workers ${go}\n`);
  io.stdout.write(`  ${plural(plan.waiting, "waiting command")} ${wait}\n`);
  return EXIT.ok;
}
