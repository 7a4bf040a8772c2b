import { type CliInput, EXIT } from "./command.ts";
import { readPackageFile } from "./package-file.ts";

/** `flow schema`: the JSON Schema of playbooks, as it is checked in. */
export async function printSchema({ io }: CliInput): Promise<number> {
  io.stdout.write(await readPackageFile("playbooks/playbook.schema.json"));
  return EXIT.ok;
}
