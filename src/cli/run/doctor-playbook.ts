import { join, resolve } from "node:path";
import { Writable } from "node:stream";
import { exists } from "../../platform/system/exists.ts";
import { packagePath } from "../../platform/system/package-file.ts";
import type { Outcome, Severity } from "../../schema/api/doctor.ts";
import { SEVERITIES } from "../../schema/api/doctor.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject } from "../../schema/words/json.ts";
import type { CliInput } from "../command-line/command.ts";
import { runPlaybook } from "./run.ts";

/**
 * Runs a playbook in this process and returns an outcome. If its result is itself an outcome, as for the bundled playbooks, its
 * severity counts; otherwise a completed run counts as repaired.
 */
export async function runRepair(input: CliInput): Promise<Outcome> {
  const file = input.arguments[0] ?? "";
  const outcome = (severity: Severity, data: JsonObject): Outcome => {
    return { action: "repair_run_playbook", severity, generated_at: new Date().toISOString(), data: { file, ...data } };
  };
  try {
    const run = await runHere(input, await playbookFile(file, input.io.folder));
    const { result } = run;
    const error = isJsonObject(run["error"]) ? run["error"]["message"] : undefined;
    if (run["status"] !== "COMPLETED") return outcome("error", { error: error ?? `The run is ${run["status"]}`, run });
    const reported = isJsonObject(result) ? SEVERITIES.find((severity) => severity === result["severity"]) : undefined;
    return outcome(reported ?? "repaired", { run });
  } catch (error) {
    return outcome("error", { error: messageOf(error), code: error instanceof FlowError ? error.code : "INTERNAL" });
  }
}

/** The file, or the bundled playbook of that name. */
async function playbookFile(file: string, folder: string): Promise<string> {
  if (!/^[\w-]+$/.test(file) || (await exists(resolve(folder, file)))) return file;
  const bundled = packagePath(join("playbooks", "doctor", `${file}.yaml`));
  return (await exists(bundled)) ? bundled : file;
}

/** The outcome object of `flow run --json`. Throws if the run cannot start. */
async function runHere({ options, io }: CliInput, file: string): Promise<JsonObject> {
  let printed = "";
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      printed += String(chunk);
      done();
    },
  });
  const runOptions = {
    runtime: "local",
    json: true,
    quiet: true,
    ...(options["set"] !== undefined && { set: options["set"] }),
  };
  await runPlaybook({ arguments: [file], options: runOptions, io: { ...io, stdout } });
  const run: unknown = JSON.parse(printed);
  if (isJsonObject(run)) return run;
  throw new FlowError("INTERNAL", "The run printed no outcome");
}
