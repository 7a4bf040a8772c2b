import { describeConfig } from "../../platform/config/config.ts";
import { packageVersion, readPackageFile } from "../../platform/system/package-file.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { cleanText, jsonText } from "../terminal/text.ts";

/** `flow config`: every setting and its value. `describeConfig` masks secrets. */
export async function printConfig({ options, io }: CliInput): Promise<number> {
  const settings = describeConfig(io.environment);
  if (options["json"] === true) {
    io.stdout.write(`${jsonText({ settings })}\n`);
    return EXIT.ok;
  }
  for (const setting of settings) {
    const value = cleanText(setting.value);
    const origin = setting.source === "default" ? "default" : `environment; default: ${setting.default}`;
    io.stdout.write(`${setting.name} = ${value}  (${origin})\n    ${setting.meaning}\n`);
  }
  return EXIT.ok;
}

/** `flow version`: the package's version, alone on one line. */
export async function printVersion({ io }: CliInput): Promise<number> {
  io.stdout.write(`${await packageVersion()}\n`);
  return EXIT.ok;
}

/** `flow schema`: the JSON Schema of playbooks, from the package. */
export async function printSchema({ io }: CliInput): Promise<number> {
  io.stdout.write(await readPackageFile("playbooks/playbook.schema.json"));
  return EXIT.ok;
}
