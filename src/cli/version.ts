import { type CliInput, EXIT } from "./command.ts";
import { readPackageFile } from "./package-file.ts";

/** `flow version`: the package's version, alone on one line. */
export async function printVersion({ io }: CliInput): Promise<number> {
  const { version } = JSON.parse(await readPackageFile("package.json")) as { version: string };
  io.stdout.write(`${version}\n`);
  return EXIT.ok;
}
