import { packageVersion } from "../../platform/system/package-file.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";

/** `flow version`: the package's version, alone on one line. */
export async function printVersion({ io }: CliInput): Promise<number> {
  io.stdout.write(`${await packageVersion()}\n`);
  return EXIT.ok;
}
