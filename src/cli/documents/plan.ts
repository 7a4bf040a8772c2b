import { access, constants } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { createFileCredentials } from "../../adapters/file-credentials.ts";
import { createFileCatalog, folderOf, shown } from "../../local/catalog.ts";
import { planRun } from "../../planning/plan.ts";
import type { KindAnswer } from "../../planning/planned.ts";
import type { Machine } from "../../planning/requirements.ts";
import { type Config, loadConfig } from "../../platform/config/config.ts";
import { formatDiagnostic } from "../../schema/words/diagnostic.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { PARSED_ONLY_KINDS, RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { isDuckdbInstalled } from "../../tools/duckdb/driver.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { styleFor } from "../terminal/style.ts";
import { cleanText, jsonText } from "../terminal/text.ts";
import { credentialsFile, readInputs } from "./inputs.ts";
import { loadNamed } from "./named-playbook.ts";
import { planText } from "./plan-text.ts";

/** `flow plan`: what would run, with rendered values and masked secrets. Calls nothing. */
export async function planPlaybook({ arguments: [target], options, io }: CliInput): Promise<number> {
  if (target === undefined) throw new FlowError("USAGE", "flow plan needs a playbook: flow plan <file>");
  const config = loadConfig(io.environment);
  const catalog = createFileCatalog();
  const playbook = await loadNamed(catalog, target, io);
  const request = await readInputs(options, io.folder);
  const credentials = createFileCredentials(await credentialsFile(config, options, io.folder), io.environment);
  const machine: Machine = {
    async credential(name) {
      try {
        const found = await credentials.find(name);
        return found === undefined ? { found: false } : { found: true, type: found.type };
      } catch (error) {
        return { found: false, reason: messageOf(error) };
      }
    },
    kind: (kind) => canRun(kind, config),
    async playbook(path) {
      try {
        return { found: true, file: shown((await catalog.load(path, folderOf(playbook.file))).file) };
      } catch (error) {
        return { found: false, reason: messageOf(error) };
      }
    },
  };
  const plan = await planRun({ ...playbook, file: shown(playbook.file) }, request, machine);
  for (const warning of plan.warnings) io.stderr.write(`${cleanText(`warning: ${formatDiagnostic(warning)}`)}\n`);
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  io.stdout.write(options["json"] === true ? `${jsonText(plan)}\n` : planText(plan, style));
  return EXIT.ok;
}

/** Whether this machine can run tasks of a kind; looks for the program behind it and starts nothing. */
async function canRun(kind: string, config: Config): Promise<KindAnswer> {
  if (!(RUNNABLE_KINDS as readonly string[]).includes(kind)) {
    const isParsed = (PARSED_ONLY_KINDS as readonly string[]).includes(kind);
    const reason = isParsed ? "the language knows this kind, and nothing here carries it out" : "no such kind is known";
    return { available: false, reason };
  }
  if (config.workerTools !== "all" && !config.workerTools.includes(kind)) {
    return { available: false, reason: `add ${kind} to FLOW_WORKER_TOOLS` };
  }
  if (kind === "duckdb" && !isDuckdbInstalled())
    return { available: false, reason: "install the package @duckdb/node-api" };
  const program = kind === "python" ? (config.python ?? "python3") : kind === "shell" ? "/bin/sh" : undefined;
  if (program === undefined || (await findProgram(program, config.environment["PATH"] ?? "")))
    return { available: true };
  const hint = kind === "python" ? "; install Python 3.8 or later, or set FLOW_PYTHON" : "";
  return { available: false, reason: `there is no program ${program}${hint}` };
}

async function findProgram(program: string, path: string): Promise<boolean> {
  const isPath = isAbsolute(program) || program.includes("/");
  const candidates = isPath ? [program] : path.split(delimiter).map((folder) => join(folder, program));
  for (const file of candidates) {
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return true;
  }
  return false;
}
