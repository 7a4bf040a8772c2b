import { addressOf } from "../../api/session.ts";
import type { Execution } from "../../api/types.ts";

/** An execution as a command for a shell. No token stands in any of them. */
export interface ShellCommand {
  label: string;
  text: string;
}

/** Commands that show an execution, follow it, start it again, and read it without flow's command line. */
export function shellCommands(execution: Execution): ShellCommand[] {
  const { execution_id: id, path, version, workload } = execution;
  const inputs = Object.keys(workload).length === 0 ? "" : ` --workload ${quoted(JSON.stringify(workload))}`;
  const address = location.origin + addressOf(`/api/executions/${id}`);
  return [
    { label: "flow status", text: `flow status ${quoted(id)}` },
    // A draft is started by its text, and again by a rerun.
    version === 0
      ? { label: "flow rerun", text: `flow rerun ${quoted(id)} --from start` }
      : { label: "flow run", text: `flow run ${quoted(path)} --runtime server --version ${version}${inputs}` },
    { label: "curl", text: `curl -sS ${quoted(address)}` },
    { label: "curl, its events", text: `curl -sS ${quoted(`${address}/events`)}` },
  ];
}

/**
 * A text as one word of a POSIX shell. Between single quotes nothing has a meaning but the quote itself, which is put in between
 * double quotes. Plain words stay as they are.
 */
export function quoted(text: string): string {
  if (/^[\w./:@%+=,-]+$/.test(text) && !text.startsWith("-")) return text;
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
