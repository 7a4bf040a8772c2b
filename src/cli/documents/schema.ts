import { readPackageFile } from "../../platform/system/package-file.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";

/** `flow schema`: the JSON Schema of playbooks, as it is checked in. */
export async function printSchema({ io }: CliInput): Promise<number> {
  io.stdout.write(await readPackageFile("playbooks/playbook.schema.json"));
  return EXIT.ok;
}
