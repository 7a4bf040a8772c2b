import { describeConfig } from "../../platform/config/config.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { cleanText, jsonText } from "../terminal/text.ts";

/** `flow config`: every setting; secrets are masked by `describeConfig`. */
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
